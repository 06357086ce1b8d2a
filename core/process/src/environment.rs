//! The environment of commands: what programs need to run and build, and nothing that could hold a secret.

/// Variables that every command gets.
const NAMES: &[&str] = &[
    // the user and the terminal
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "CLICOLOR",
    "HOSTNAME",
    "OSTYPE",
    "CI",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_DIRS",
    "SOURCE_DATE_EPOCH",
    "PATH",
    "MANPATH",
    // compilers
    "CC",
    "CXX",
    "AR",
    "LD",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "PKG_CONFIG_PATH",
    "CPATH",
    "LIBRARY_PATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    // languages
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUST_TEST_THREADS",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "VIRTUAL_ENV",
    "NODE_ENV",
    "NODE_PATH",
    "JAVA_HOME",
    "JDK_HOME",
    "M2_HOME",
    "MAVEN_HOME",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "KOTLIN_HOME",
    "SCALA_HOME",
    "DOTNET_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "BUNDLE_PATH",
    "BUNDLE_GEMFILE",
    "OPAMROOT",
    "STACK_ROOT",
    "JULIA_DEPOT_PATH",
    "ERL_LIBS",
    "MIX_ENV",
    "MIX_HOME",
    "HEX_HOME",
    "SWIFT_EXEC",
    "BUN_INSTALL",
    "DENO_DIR",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "GOROOT",
    "GOPATH",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOTMPDIR",
    "GOENV",
    "GOFLAGS",
    "GOOS",
    "GOARCH",
    "GOARM",
    "GOARM64",
    "GOAMD64",
    "GO386",
    "GOWASM",
    "GO111MODULE",
    "GOWORK",
    "GOTOOLCHAIN",
    "GOEXPERIMENT",
    "GOPROXY",
    "GOSUMDB",
    "GOPRIVATE",
    "GONOPROXY",
    "GONOSUMDB",
    "GOINSECURE",
    "GOVCS",
    "GOMAXPROCS",
    "GOGC",
    "GOMEMLIMIT",
    "GODEBUG",
    "GOTRACEBACK",
    "GOTELEMETRY",
    "GORACE",
    "GOCOVERDIR",
    "GOLANGCI_LINT_CACHE",
    // certificates
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
];
/// Beginnings of such names: locales and toolchains. None that is also the start of other products' names.
const BEGINNINGS: &[&str] = &[
    "LC_",
    "CARGO_",
    "RUSTUP_",
    "CGO_",
    "PYENV_",
    "PIP_CACHE_",
    "UV_CACHE_",
    "UV_PYTHON",
    "POETRY_CACHE_",
    "CONDA_",
    "NVM_",
    "FNM_",
    "VOLTA_",
    "ASDF_",
    "MISE_",
    "SDKMAN_",
    "RBENV_",
    "RVM_",
    "JENV_",
    "PNPM_",
    "COREPACK_",
    "CMAKE_",
    "NINJA_",
    "CCACHE_",
    "SCCACHE_",
    "MESON_",
    "VCPKG_",
    "NIX_",
    "GHCUP_",
    "CABAL_",
    "npm_config_cache",
];
/// Variables that name folders or options from which a program loads code before it does anything: often `.` or `src`, which
/// is code of the workspace.
const NAME_CODE: [&str; 10] = [
    "PYTHONPATH",
    "NODE_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "BUNDLE_PATH",
    "BUNDLE_GEMFILE",
    "ERL_LIBS",
    "JULIA_DEPOT_PATH",
    "MAKEFLAGS",
    "GOFLAGS",
];
/// Variables that keep a program from starting a pager or an editor and from asking: no user is at its terminal.
const QUIET: [(&str, &str); 6] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("EDITOR", "false"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("TERM", "dumb"),
];
/// Parts of names that hold secrets, or that make a toolchain run another program.
const REFUSED: [&str; 9] = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "COOKIE", "WRAPPER", "LAUNCHER"];
/// The same as whole words of a name, between underscores: `PAT` is also a part of `PATH`.
const REFUSED_WORDS: [&str; 7] = ["PAT", "PWD", "JWT", "DSN", "RUNNER", "RUSTC", "RUSTDOC"];
/// How secrets begin.
const SECRETS: [&str; 14] = [
    "sk-",
    "pk-",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "eyJ",
    "-----BEGIN",
];

/// Returns the environment of commands: of the user's only the variables above and those that the user `named`.
pub fn environment(all: impl IntoIterator<Item = (String, String)>, named: &[String]) -> Vec<(String, String)> {
    let is_passed_on = |name: &str, value: &str| {
        named.iter().any(|it| it == name)
            || ((NAMES.contains(&name) || BEGINNINGS.iter().any(|it| name.starts_with(it)))
                && !is_refused(name)
                && !looks_secret(value))
    };
    let is_quiet = |name: &str| QUIET.iter().any(|(quiet, _)| *quiet == name);
    let mut kept: Vec<_> =
        all.into_iter().filter(|(name, value)| !is_quiet(name) && is_passed_on(name, value)).collect();
    kept.extend(QUIET.map(|(name, value)| (name.to_owned(), value.to_owned())));
    kept
}

/// Whether a variable of this name makes programs load code. A command that runs unasked gets none of them.
pub fn names_code(name: &str) -> bool {
    NAME_CODE.contains(&name)
}

fn is_refused(name: &str) -> bool {
    let name = name.to_uppercase();
    REFUSED.iter().any(|it| name.contains(it)) || name.split('_').any(|word| REFUSED_WORDS.contains(&word))
}

/// Whether a value looks like a key, sets a password (`-Dpassword=…`), or is an address with a password in it.
fn looks_secret(value: &str) -> bool {
    let sets_one = value.split([' ', ',', ';']).filter_map(|word| word.split_once('=')).any(|(name, value)| {
        let name = name.to_uppercase();
        !value.is_empty() && ["PASSWORD", "PASSWD", "TOKEN", "SECRET", "APIKEY"].iter().any(|it| name.ends_with(it))
    });
    let has_password = value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some()
    });
    sets_one
        || has_password
        || value.split([' ', ',', ':', '=']).any(|word| SECRETS.iter().any(|it| word.starts_with(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: the beginnings are `GO` and `GRADLE_`; a name is not split into its words.
    #[test]
    fn commands_get_what_toolchains_need_and_no_secret_under_any_name() {
        let given = |name: &str, value: &str| {
            environment([(name.to_owned(), value.to_owned())], &["MINE".to_owned()])
                .iter()
                .any(|(it, v)| it == name && v == value)
        };
        for (name, value) in [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/home/me"),
            ("LC_ALL", "C.UTF-8"),
            ("CARGO_HOME", "/home/me/.cargo"),
            ("GOPROXY", "https://proxy.example.com,direct"),
            ("RUSTFLAGS", "-C target-cpu=native"),
            ("CARGO_TARGET_DIR", "/tmp/target"),
            ("GOPATH", "/home/me/go"),
            ("GOFLAGS", "-mod=vendor"),
            ("GRADLE_USER_HOME", "/home/me/.gradle"),
            ("MINE", "sk-of-the-user"),
        ] {
            assert!(given(name, value), "{name}");
        }
        for (name, value) in [
            ("OPENAI_API_KEY", "x"),
            ("DATABASE_URL", "postgres://me:pw@db/x"),
            ("REDIS_URL", "redis://x"),
            ("MYSQL_PWD", "x"),
            ("GITHUB_PAT", "x"),
            ("JWT", "x"),
            ("COOKIE", "x"),
            ("SENTRY_DSN", "x"),
            ("KUBECONFIG", "/x"),
            ("DOCKER_HOST", "x"),
            ("SSH_AUTH_SOCK", "/x"),
            ("DBUS_SESSION_BUS_ADDRESS", "x"),
            ("HTTPS_PROXY", "http://me:pw@proxy"),
            ("GIT_EXTERNAL_DIFF", "x"),
            ("GIT_SSH_COMMAND", "x"),
            ("NODE_OPTIONS", "--require x"),
            ("PERL5OPT", "x"),
            ("RUBYOPT", "x"),
            ("JAVA_TOOL_OPTIONS", "x"),
            ("RUSTC_WRAPPER", "x"),
            ("CARGO_BUILD_RUSTC_WRAPPER", "x"),
            ("CARGO_REGISTRY_TOKEN", "x"),
            ("GO_JWT", "x"),
            ("GO_SERVICE_URL", "x"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/x"),
            ("GOOGLE_CLOUD_PROJECT", "x"),
            ("GRADLE_USER_PASS", "x"),
            ("GRADLE_OPTS", "-Dpassword=x"),
            ("CARGO_X_PAT", "x"),
            ("CARGO_X_COOKIE", "x"),
            ("NIX_SENTRY_DSN", "x"),
            ("CONDA_DB_PWD", "x"),
            ("CMAKE_ARGS", "-Dpassword=x"),
            ("RUSTFLAGS", "--cfg api_token=x"),
            ("CARGO_BUILD_RUSTC", "x"),
            ("CARGO_BUILD_RUSTDOC", "x"),
            ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "x"),
            ("LESSOPEN", "x"),
            ("LD_PRELOAD", "x"),
            ("BASH_ENV", "x"),
            ("BASH_FUNC_ls%%", "x"),
            ("GOPROXY", "https://me:pw@proxy.example.com"),
            ("CARGO_X", "ghp_abc"),
            ("EDITOR", "vim"),
        ] {
            assert!(!given(name, value), "{name}");
        }
    }
}
