//! What programs see of the machine: the toolchains, and no secret beside or in them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::shell::Shell;

/// What no program may print.
const PRIVATE: &str = "canary-of-the-home";

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
    fs::write(path, text).expect("write");
}

/// What a command prints, with this home folder and these folders of programs before the usual ones.
fn output(shell: &Shell, tier: &str, command: &str, home: &Path, path: &[&Path]) -> String {
    let args = json!({ "command": command }).to_string();
    let mut pixir: Command = shell.command(["tools", "run", "bash", &args, "--write", "--sandbox", tier]);
    let usual = std::env::var("PATH").unwrap_or_default();
    let all: Vec<PathBuf> = path.iter().map(|it| it.to_path_buf()).chain(std::env::split_paths(&usual)).collect();
    pixir.env("HOME", home).env("PATH", std::env::join_paths(all).expect("a path"));
    let ran = pixir.output().expect("it starts");
    format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
}

fn home_of(shell: &Shell) -> PathBuf {
    let home = shell.workspace().canonicalize().expect("there").parent().expect("a parent").join("user");
    fs::create_dir_all(&home).expect("mkdir");
    home
}

/// Where toolchains keep keys and passwords, in a home folder.
const CREDENTIALS: [&str; 26] = [
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".bundle/config",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".ivy2/.credentials",
    ".sbt/credentials",
    ".nuget/NuGet/NuGet.Config",
    ".pub-cache/credentials.json",
    ".hex/hex.config",
    ".stack/upload/credentials.json",
    ".cabal/config",
    ".julia/servers/pkg.example.com/auth.toml",
    ".conda/aau_token",
    ".config/git/credentials",
    ".local/share/uv/credentials/credentials.toml",
    ".local/share/mise/secrets",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".netrc",
    ".config/pip/pip.conf",
    ".config/containers/auth.json",
    ".config/github-copilot/hosts.json",
    ".cache/huggingface/token",
    ".terraformrc",
];

/// Broken build: `SECRETS` has no line for a toolchain that the view shows.
#[test]
fn no_toolchain_shows_its_credentials_to_a_program() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[]);
        let home = home_of(&shell);
        for name in CREDENTIALS {
            write(&home.join(name), &format!("password: {PRIVATE}\n"));
        }
        write(&home.join(".cargo/config.toml"), "shown\n");
        let cat = format!("cd ~; cat {} .cargo/config.toml", CREDENTIALS.join(" "));
        let told = output(&shell, tier, &cat, &home, &[]);
        assert!(told.contains("shown\n") && !told.contains(PRIVATE), "{tier}: {told}");
        // Settings without a password are those that a build needs.
        write(&home.join(".cabal/config"), "-- password:\nremote-repo-cache: plain\n");
        let told = output(&shell, tier, "cat ~/.cabal/config", &home, &[]);
        assert!(told.contains("remote-repo-cache: plain"), "{tier}: {told}");
    }
}

/// Broken build: `is_secret` knows only the files of which it has a list.
#[test]
fn no_tool_reads_what_is_named_like_a_secret_below_the_home_folder() {
    let shell = Shell::new(&[("token", "of the workspace\n")]);
    let home = home_of(&shell);
    let secrets = [
        ".config/sops/age/keys.txt",
        ".kaggle/kaggle.json",
        ".local/share/opencode/auth.json",
        ".curlrc",
        ".Xauthority",
        ".config/BraveSoftware/Brave-Browser/Default/Login Data",
        ".config/Slack/Cookies",
        ".config/Signal/config.json",
        ".local/share/fish/fish_history",
        ".config/some-tool/auth.json",
        ".config/some-tool/credentials-work.json",
        ".config/some-tool/access_token",
        "keys/server.pem",
        ".some_history",
    ];
    let plain = ["lib/src/token.rs", "lib/history.md", "lib/credentials.py", "lib/tokenizer.json"];
    for name in secrets {
        write(&home.join(name), PRIVATE);
    }
    for name in plain {
        write(&home.join(name), "plain text\n");
    }
    let read = |path: &str| {
        let args = json!({ "path": path }).to_string();
        let mut pixir = shell.command(["tools", "run", "read", &args, "--write"]);
        String::from_utf8_lossy(&pixir.env("HOME", &home).output().expect("it starts").stdout).into_owned()
    };
    for name in secrets {
        let told = read(&home.join(name).display().to_string());
        assert!(!told.contains(PRIVATE), "{name}: {told}");
    }
    for name in plain {
        let told = read(&home.join(name).display().to_string());
        assert!(told.contains("plain text"), "{name}: {told}");
    }
    assert!(read("token").contains("of the workspace"), "the workspace is the user's to show");
}

/// Broken builds: all that lies beside a folder of programs is shown; paths are compared as they are written; the machine's
/// `/tmp` stands in the place of the Session's.
#[test]
fn a_folder_of_programs_shows_what_belongs_to_its_programs_alone() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[]);
        let home = home_of(&shell);
        write(&home.join("projects/.env"), PRIVATE);
        write(&home.join("projects/other/notes"), PRIVATE);
        write(&home.join("projects/lib/data"), "its library\n");
        write(&home.join("projects/bin/.netrc"), PRIVATE);
        write(&home.join("projects/bin/tell"), "#!/bin/sh\ncat ~/projects/lib/data\n");
        write(&home.join("notes"), PRIVATE);
        fs::set_permissions(home.join("projects/bin/tell"), fs::Permissions::from_mode(0o755)).expect("chmod");
        let look = "tell; cat ~/projects/.env ~/projects/other/notes ~/projects/bin/.netrc ~/notes";
        let told = output(&shell, tier, look, &home, &[&home.join("projects/bin")]);
        assert!(told.contains("its library") && !told.contains(PRIVATE), "{tier}: {told}");

        // The home folder under another name, on the way to its own programs or as one of them.
        let link = home.with_file_name("link");
        symlink(&home, &link).expect("symlink");
        for path in [home.join("bin"), home.clone(), home.parent().expect("a parent").to_owned(), "/tmp".into()] {
            fs::create_dir_all(home.join("bin")).expect("mkdir");
            let told = output(&shell, tier, "cat ~/notes; echo ran", &link, &[&path]);
            assert!(told.contains("ran\n") && !told.contains(PRIVATE), "{tier}: {}: {told}", path.display());
        }
    }
}

/// Broken build: the links are made before the temporary folder, in its place.
#[test]
fn a_folder_of_programs_below_tmp_leaves_the_temporary_folder_writable() {
    let folder = tempfile::Builder::new().prefix("programs").tempdir_in("/tmp").expect("a folder");
    let bin = folder.path().join("bin");
    write(&bin.join("tell"), "#!/bin/sh\necho found\n");
    fs::set_permissions(bin.join("tell"), fs::Permissions::from_mode(0o755)).expect("chmod");
    let link = folder.path().join("link");
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[]);
        let home = home_of(&shell);
        let _ = fs::remove_file(&link);
        symlink(&home, &link).expect("symlink");
        let told = output(&shell, tier, "tell; d=$(mktemp -d) && touch $d/x && echo written", &link, &[&bin]);
        assert!(told.contains("found\n") && told.contains("written\n"), "{tier}: {told}");
    }
}
