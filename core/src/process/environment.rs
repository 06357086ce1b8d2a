//! The environment of commands: what programs need to run and build, and nothing that could hold a secret.

/// Variables that every command gets.
const NAMES: [&str; 74] = [
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
    // certificates
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
];
/// Beginnings of such names: locales and toolchains.
const BEGINNINGS: [&str; 33] = [
    "LC_",
    "CARGO_",
    "RUSTUP_",
    "GO",
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
    "GRADLE_",
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
const REFUSED: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "WRAPPER", "LAUNCHER"];
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
pub(crate) fn environment(all: impl IntoIterator<Item = (String, String)>, named: &[String]) -> Vec<(String, String)> {
    let is_passed_on = |name: &str, value: &str| {
        named.iter().any(|it| it == name)
            || ((NAMES.contains(&name) || BEGINNINGS.iter().any(|it| name.starts_with(it)))
                && !REFUSED.iter().any(|it| name.to_uppercase().contains(it))
                && !looks_secret(value))
    };
    let is_quiet = |name: &str| QUIET.iter().any(|(quiet, _)| *quiet == name);
    let mut kept: Vec<_> =
        all.into_iter().filter(|(name, value)| !is_quiet(name) && is_passed_on(name, value)).collect();
    kept.extend(QUIET.map(|(name, value)| (name.to_owned(), value.to_owned())));
    kept
}

/// Whether a value looks like a key, or is an address with a password in it.
fn looks_secret(value: &str) -> bool {
    let has_password = value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some()
    });
    has_password || value.split([' ', ',', ':', '=']).any(|word| SECRETS.iter().any(|it| word.starts_with(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
