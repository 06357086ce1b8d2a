//! Under which words a program uses the network itself, and starts no other program that would use it too.
//!
//! A rule such as `bash(git push *)` gives the network to git. These tables are allow-lists of options, from the manuals: what
//! they leave out may name a program (`--upload-pack`, `ProxyCommand`), or a file that names one (`--config`). Where a manual
//! is too long for that, they list the words that do.

use std::fs;
use std::path::Path;

use crate::readers::options::{Options, Parse};

/// A program, or a command of it, that uses the network.
struct Own {
    /// Its names, each with its command.
    of: &'static [&'static str],
    words: Words,
}

/// Under which words the network is its own.
enum Words {
    /// These options and no others; any operands.
    Only(Options),
    /// Any but these options and commands.
    AnyBut(&'static str),
    /// These options, and a repository of another machine.
    Git(Options),
    /// These options, and `-o` with a setting that names no program.
    Ssh(Options),
    /// No option before the package that it starts.
    NameFirst,
}

const fn only(of: &'static [&'static str], short: &'static str, long: &'static str) -> Own {
    Own { of, words: Words::Only(Options { short, long, parse: Parse::Anywhere }) }
}

const fn git(of: &'static [&'static str], short: &'static str, long: &'static str) -> Own {
    Own { of, words: Words::Git(Options { short, long, parse: Parse::Anywhere }) }
}

const fn ssh(of: &'static [&'static str], short: &'static str, parse: Parse) -> Own {
    Own { of, words: Words::Ssh(Options { short, long: "", parse }) }
}

const FETCH: &str = "all append atomic depth= deepen= shallow-since= shallow-exclude= unshallow update-shallow force keep auto-maintenance no-auto-maintenance auto-gc no-auto-gc prune no-prune prune-tags tags no-tags set-upstream dry-run porcelain write-fetch-head no-write-fetch-head filter= refetch show-forced-updates no-show-forced-updates update-head-ok recurse-submodules[=] no-recurse-submodules server-option= negotiation-tip= jobs= quiet verbose progress no-progress ipv4 ipv6";

const OWN: &[Own] = &[
    // git-fetch(1). Left out: `--upload-pack`, and `--multiple`, which makes a repository of each operand.
    git(&["git fetch"], "aftpPnkuqv46j:o:", FETCH),
    // git-pull(1). Left out: `--strategy`, which starts `git-merge-NAME`, `--edit`, `--gpg-sign`.
    git(
        &["git pull"],
        "aftpPnkuqv46j:o:rX:",
        "all append depth= deepen= shallow-since= unshallow force keep prune no-prune tags no-tags set-upstream dry-run recurse-submodules[=] no-recurse-submodules server-option= jobs= quiet verbose progress no-progress ipv4 ipv6 rebase[=] no-rebase ff no-ff ff-only squash no-squash commit no-commit no-edit autostash no-autostash stat no-stat strategy-option= allow-unrelated-histories log[=] no-log signoff",
    ),
    // git-push(1). Left out: `--receive-pack`, `--exec`, `--repo`.
    git(
        &["git push"],
        "fqvnudo:46",
        "all branches mirror tags follow-tags no-follow-tags atomic no-atomic dry-run porcelain delete prune force force-with-lease[=] no-force-with-lease force-if-includes no-force-if-includes set-upstream thin no-thin verify no-verify push-option= no-signed recurse-submodules= no-recurse-submodules quiet verbose progress no-progress ipv4 ipv6",
    ),
    // git-clone(1). Left out: `--upload-pack`, `--config`, `--template`, which has hooks, `--reference`, `--bundle-uri`.
    git(
        &["git clone"],
        "qvnb:o:j:46",
        "depth= branch= single-branch no-single-branch tags no-tags no-checkout bare mirror origin= shallow-since= shallow-exclude= filter= sparse recurse-submodules[=] recursive[=] shallow-submodules no-shallow-submodules jobs= server-option= ref-format= quiet verbose progress no-progress ipv4 ipv6",
    ),
    git(
        &["git ls-remote"],
        "htqo:46",
        "heads branches tags refs quiet exit-code get-url symref sort= server-option= ipv4 ipv6",
    ),
    git(&["git remote update"], "pv", "prune"),
    // curl(1). Left out: `--config`, `--engine`, sockets by path.
    only(
        &["curl"],
        "fsSLkIgGNOjJRvi#46aZnq0o:H:d:X:u:A:e:b:c:m:F:T:C:r:x:w:D:z:y:Y:",
        "fail fail-with-body fail-early silent show-error location location-trusted insecure head get request= header= data= data-ascii= data-raw= data-binary= data-urlencode= json= form= form-string= user= user-agent= referer= output= output-dir= create-dirs remote-name remote-name-all remote-header-name remote-time compressed verbose include max-time= connect-timeout= retry= retry-delay= retry-max-time= retry-all-errors retry-connrefused cookie= cookie-jar= write-out= dump-header= range= continue-at= upload-file= proxy= noproxy= url= url-query= http1.0 http1.1 http2 http3 ipv4 ipv6 tlsv1.2 tlsv1.3 proto= proto-default= proto-redir= max-redirs= max-filesize= limit-rate= no-progress-meter progress-bar globoff cacert= capath= resolve= connect-to= interface= parallel parallel-max= next no-buffer time-cond= etag-save= etag-compare= basic digest anyauth oauth2-bearer= post301 post302 post303 trace= trace-ascii= trace-time stderr= raw no-clobber path-as-is ssl-reqd netrc version help",
    ),
    // wget(1). Left out: `--config`, `--execute`, `--use-askpass`.
    only(
        &["wget"],
        "qvncdNSrpkEHLbxm46O:P:t:T:i:l:o:a:w:Q:R:A:D:X:I:U:",
        "quiet verbose no-verbose output-document= directory-prefix= tries= timeout= connect-timeout= read-timeout= dns-timeout= continue no-clobber timestamping no-timestamping server-response spider recursive level= page-requisites convert-links backup-converted no-parent no-check-certificate ca-certificate= header= user-agent= referer= user= password= post-data= post-file= body-data= body-file= method= content-disposition trust-server-names max-redirect= limit-rate= wait= waitretry= random-wait accept= reject= accept-regex= reject-regex= domains= exclude-domains= input-file= output-file= append-output= no-proxy inet4-only inet6-only show-progress progress= no-directories force-directories cut-dirs= no-host-directories adjust-extension span-hosts relative mirror no-hsts load-cookies= save-cookies= keep-session-cookies retry-connrefused retry-on-http-error= secure-protocol= https-only compression= start-pos= unlink version help",
    ),
    // ssh(1), scp(1), sftp(1). Left out: `-F`, `-S` and `-D` of scp and sftp, `-I`, `-b` of sftp, whose lines may begin with `!`.
    ssh(&["ssh"], "46AaCfGgKkMNnqsTtVvXxYyb:c:D:e:i:L:l:m:O:p:Q:R:w:W:J:o:", Parse::BeforeOperands),
    ssh(&["scp"], "346ABCpqrTvROc:i:J:l:o:P:X:", Parse::Anywhere),
    ssh(&["sftp"], "46aACfNpqrvB:c:i:J:l:o:P:R:X:", Parse::Anywhere),
    // Left out: `-e`, `-c`, `--exec`, `--sh-exec`, `--lua-exec`.
    only(&["nc", "ncat"], "zvunlkN46w:p:i:q:s:", ""),
    only(&["telnet"], "", ""),
    only(&["ping"], "46nqvc:i:W:w:s:t:I:", ""),
    only(&["dig"], "46x:t:p:q:c:b:", ""),
    // cargo(1). Left out: `--config`, `-Z`, `-C`.
    only(
        &["cargo add", "cargo install", "cargo update", "cargo fetch", "cargo publish"],
        "vqfFp:j:",
        "features= no-default-features default-features all-features dev build optional no-optional rename= git= branch= tag= rev= path= registry= index= offline locked frozen quiet verbose package= workspace exclude= manifest-path= lockfile-path= dry-run precise= aggressive recursive breaking target= version= vers= force root= bin= bins example= examples profile= debug no-track list jobs= keep-going color= allow-dirty no-verify public no-public ignore-rust-version help",
    ),
    // npm(7), and the manuals of pnpm, yarn and bun. Left out: `--script-shell`, `--node-options`, `--git`, `--prefix`, settings
    // files. What packages and the project run at an installation is a part of it.
    only(
        &[
            "npm install",
            "npm i",
            "npm ci",
            "npm add",
            "npm update",
            "npm upgrade",
            "npm publish",
            "pnpm install",
            "pnpm i",
            "pnpm add",
            "pnpm update",
            "pnpm upgrade",
            "pnpm publish",
            "pnpm fetch",
            "yarn install",
            "yarn add",
            "yarn upgrade",
            "yarn publish",
            "bun install",
            "bun i",
            "bun add",
            "bun update",
            "bun publish",
        ],
        "DEOPSBgfdsqrTLW",
        "save save-dev save-prod save-optional save-peer save-exact save-bundle no-save global force legacy-peer-deps strict-peer-deps production prod dev only= omit= include= audit no-audit fund no-fund silent quiet verbose workspace= workspaces workspace-root ignore-workspace-root-check prefer-offline prefer-online offline package-lock package-lock-only no-package-lock ignore-scripts dry-run loglevel= progress no-progress registry= tag= access= otp= frozen-lockfile no-frozen-lockfile immutable lockfile-only no-lockfile filter= recursive latest exact optional no-optional engine-strict no-bin-links color= no-color audit-level= install-strategy= provenance depth= peer tilde help",
    ),
    // pip(1). Left out: `--python`, `--config-settings`, `--global-option`, `--keyring-provider`, `--log`.
    only(
        &["pip install", "pip3 install", "pip download", "python -m pip install", "python3 -m pip install"],
        "UqvIr:c:e:t:i:f:",
        "upgrade requirement= constraint= editable= target= index-url= extra-index-url= find-links= no-index pre no-deps no-cache-dir user quiet verbose force-reinstall ignore-installed upgrade-strategy= no-build-isolation no-binary= only-binary= prefer-binary disable-pip-version-check break-system-packages root-user-action= progress-bar= timeout= retries= trusted-host= require-hashes no-input dry-run no-warn-script-location no-color group= use-pep517 no-compile help",
    ),
    // Left out: `--python`, `--config-file`, `--directory`, `--project`, `--script`.
    only(
        &["uv add", "uv sync", "uv publish"],
        "qvUr:n",
        "dev group= extra= all-extras all-groups no-dev only-dev only-group= no-group= upgrade upgrade-package= frozen locked quiet verbose no-cache refresh reinstall index= index-url= extra-index-url= default-index= requirements= editable optional= no-sync package= all-packages no-install-project no-install-workspace inexact exact no-progress branch= tag= rev= bounds= help",
    ),
    only(
        &["poetry add", "poetry install", "poetry update", "poetry publish", "poetry sync"],
        "DG:E:eqnv",
        "dev group= with= without= only= extras= all-extras all-groups no-root sync editable allow-prereleases optional dry-run lock quiet no-interaction verbose build help",
    ),
    // Left out: `--config-file`, and the words behind `--`.
    only(
        &["gem install", "gem update", "gem fetch"],
        "Nv:fqV",
        "no-document version= prerelease pre conservative user-install force quiet verbose development minimal-deps help",
    ),
    only(
        &["bundle install", "bundle add", "bundle update", "bundle fetch"],
        "j:g:v:",
        "jobs= retry= quiet verbose local deployment frozen clean no-cache conservative group= version= all without= with= skip-install help",
    ),
    only(
        &["composer install", "composer update"],
        "onqvW",
        "no-dev dev optimize-autoloader no-interaction no-scripts no-plugins prefer-dist prefer-source no-progress quiet verbose with-all-dependencies dry-run ignore-platform-reqs ignore-platform-req= no-autoloader help",
    ),
    // `go help get`. Left out: `-toolexec`, `-exec`, `-modfile`, `-overlay`, `-ldflags`.
    Own {
        of: &["go get", "go install", "go mod download", "go mod tidy"],
        words: Words::Only(Options {
            short: "",
            long: "",
            parse: Parse::Alone("u t v x d n json u=patch u=minor mod=mod modcacherw insecure"),
        }),
    },
    Own { of: &["npx", "bunx", "uvx"], words: Words::NameFirst },
    // `apt -o` and `-c` name programs that run before an update.
    only(
        &["apt", "apt-get", "dnf", "yum", "brew", "apk", "pacman"],
        "yqvfSuRsU",
        "yes assume-yes quiet verbose no-install-recommends no-cache noconfirm needed refresh update upgrade fix-broken best nogpgcheck cask formula help",
    ),
    // `kubectl edit` and `diff` start the program of a variable; a file of settings names programs for the sign-in.
    Own { of: &["kubectl"], words: Words::AnyBut("edit diff plugin config krew --kubeconfig --raw") },
    // Aliases and extensions are programs; flags behind `--` are those of git.
    Own {
        of: &["gh"],
        words: Words::AnyBut("alias extension ext extensions codespace cs config -- --editor -e --web -w"),
    },
    Own { of: &["aws"], words: Words::AnyBut("configure ssm ecs emr") },
    Own { of: &["gcloud"], words: Words::AnyBut("ssh scp config components --flags-file --ssh-flag --scp-flag --") },
    Own { of: &["az"], words: Words::AnyBut("extension ssh config alias interactive --") },
];

/// Settings of ssh that name neither a program, nor a library, nor a file with more settings.
const SSH_SETTINGS: [&str; 22] = [
    "addressfamily",
    "batchmode",
    "ciphers",
    "compression",
    "connectionattempts",
    "connecttimeout",
    "hostkeyalgorithms",
    "hostname",
    "identitiesonly",
    "loglevel",
    "macs",
    "numberofpasswordprompts",
    "passwordauthentication",
    "port",
    "preferredauthentications",
    "pubkeyauthentication",
    "requesttty",
    "serveralivecountmax",
    "serveraliveinterval",
    "stricthostkeychecking",
    "user",
    "userknownhostsfile",
];

/// Whether a program that needs the network uses it itself under these words, started in one of these folders.
pub(super) fn is_its_own(words: &[&str], folders: &[&Path], workspace: &Path) -> bool {
    let Some((program, args)) = words.split_first() else { return false };
    // A program of the workspace is none of these.
    let name = program.strip_prefix("/usr/bin/").unwrap_or(program);
    OWN.iter().any(|own| {
        own.of.iter().any(|of| {
            let of: Vec<&str> = of.split(' ').collect();
            of[0] == name && args.starts_with(&of[1..]) && own.words.hold(&args[of.len() - 1..], folders, workspace)
        })
    })
}

impl Words {
    fn hold(&self, args: &[&str], folders: &[&Path], workspace: &Path) -> bool {
        match self {
            Words::Only(options) => !args.contains(&"--") && options.take_known(args).is_some(),
            Words::AnyBut(words) => {
                let is_listed = |arg: &&str| {
                    let name = arg.split('=').next().unwrap_or(arg);
                    // Many programs take the start of an option's name for the whole of it.
                    words.split(' ').any(|it| {
                        it == *arg || it == name || (name.len() > 3 && name.starts_with("--") && it.starts_with(name))
                    })
                };
                !args.iter().any(is_listed)
            }
            Words::Git(options) => {
                let Some((_, operands)) = options.take_known(args) else { return false };
                let repository = operands.first().map_or("", String::as_str);
                folders.iter().all(|folder| {
                    is_of_workspace(folder, workspace) && (operands.is_empty() || is_elsewhere(repository, folder))
                })
            }
            Words::Ssh(options) => {
                let Some((flags, operands)) = options.take_known(args) else { return false };
                let is_harmless = |setting: &str| {
                    let key = setting.split(['=', ' ']).next().unwrap_or_default().to_ascii_lowercase();
                    SSH_SETTINGS.contains(&key.as_str())
                };
                // ssh goes on to look for options behind the name of the machine.
                let goes_on = operands.get(1).is_some_and(|it| it.starts_with('-'));
                !goes_on && flags.iter().all(|(flag, value)| flag != "-o" || value.as_deref().is_some_and(is_harmless))
            }
            Words::NameFirst => args.first().is_some_and(|it| !it.starts_with(['-', '.', '/'])),
        }
    }
}

/// Whether git takes the repository of the workspace in this folder: one that lies deeper has settings of its own.
fn is_of_workspace(folder: &Path, workspace: &Path) -> bool {
    folder.starts_with(workspace)
        && folder
            .ancestors()
            .take_while(|at| *at != workspace)
            .all(|at| fs::symlink_metadata(at.join(".git")).is_err() && fs::symlink_metadata(at.join("HEAD")).is_err())
}

/// Whether git reaches this repository over the network. One on this machine has hooks and settings of its own, and `ext::` and
/// its like are programs.
fn is_elsewhere(repository: &str, folder: &Path) -> bool {
    if repository.contains("::") || repository.starts_with(['-', '.', '/', '~']) {
        return false;
    }
    if let Some((scheme, _)) = repository.split_once("://") {
        return ["https", "http", "ssh", "git"].contains(&scheme);
    }
    match repository.split_once(':') {
        Some((host, _)) => !host.is_empty() && !host.contains('/'),
        // A name of the repository's configuration, unless a folder or a bundle has that name.
        None => {
            let is_there = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
            !repository.contains('/')
                && !["", ".git", ".bundle"].iter().any(|ending| is_there(&format!("{repository}{ending}")))
        }
    }
}
