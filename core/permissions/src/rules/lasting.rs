//! Commands whose damage lasts, as data.
//!
//! What is here is not restored by an undo of pixir: it lies outside the workspace (another machine, a disk, a database), is
//! published, or is history that is rewritten. What is reversible, or made again by a build, is not here.

/// A command whose damage lasts.
pub(super) struct Lasting {
    programs: &'static str,
    /// Its words have each of these, in this order; `|` separates alternatives, and `*` matches any text.
    words: &'static [&'static str],
    /// With one of these, it only shows what it would do.
    unless: &'static str,
    /// What it does, as a clause.
    what: &'static str,
}

const fn lasting(programs: &'static str, words: &'static [&'static str], what: &'static str) -> Lasting {
    Lasting { programs, words, unless: "--dry-run --dry-run=client --dry-run=server --dryrun --help", what }
}

const CLUSTER: &str = "it deletes from a cluster";
const CLOUD: &str = "it deletes in the cloud";
const STORE: &str = "it deletes stored files of another machine";
const DATABASE: &str = "it deletes a database";
const DATA: &str = "it deletes data of a database";
const DISK: &str = "it erases a disk";
const PUBLISHES: &str = "it publishes a package, which cannot be taken back";
const PUBLISHED: &str = "it removes what is published";
const INFRASTRUCTURE: &str = "it deletes what it has made";
const UNASKED: &str = "it changes what it has made, without showing it first";
const CONTAINERS: &str = "it deletes containers, images or stored data";
const HISTORY: &str = "it rewrites or deletes history of the repository";
const SECRETS: &str = "it deletes keys or secrets";
const SYSTEM: &str = "it changes the system for good";

const LASTING: &[Lasting] = &[
    // Clusters and infrastructure: their state lies on other machines.
    lasting("kubectl oc", &["delete"], CLUSTER),
    lasting("kubectl oc", &["replace", "--force"], CLUSTER),
    lasting("kubectl oc", &["apply", "--prune"], CLUSTER),
    lasting("kubectl oc", &["drain"], "it stops what runs on a machine of a cluster"),
    lasting("helm", &["uninstall|delete|del|un"], CLUSTER),
    lasting("k3d kind minikube eksctl kops", &["delete"], CLUSTER),
    lasting("terraform tofu terragrunt", &["destroy|-destroy"], INFRASTRUCTURE),
    lasting(
        "terraform tofu terragrunt",
        &["apply", "-auto-approve*|--auto-approve*|--terragrunt-non-interactive"],
        UNASKED,
    ),
    lasting("terraform tofu", &["state", "rm|push"], "it changes the state of terraform"),
    lasting("terraform tofu", &["workspace", "delete"], "it changes the state of terraform"),
    lasting("pulumi", &["destroy|down"], INFRASTRUCTURE),
    lasting("pulumi", &["up|update", "--yes|-y|-f|--skip-preview"], UNASKED),
    lasting("pulumi", &["stack", "rm"], INFRASTRUCTURE),
    lasting("cdk sst", &["destroy|remove"], INFRASTRUCTURE),
    lasting("cdk", &["deploy", "--require-approval*"], UNASKED),
    lasting("serverless sls", &["remove"], INFRASTRUCTURE),
    lasting("vagrant", &["destroy"], INFRASTRUCTURE),
    lasting("nomad", &["purge|-purge"], CLUSTER),
    lasting("consul etcdctl", &["delete|del"], DATA),
    // Clouds.
    lasting("aws", &["s3", "rm|rb"], STORE),
    lasting("aws", &["s3", "sync", "--delete"], STORE),
    lasting(
        "aws",
        &["delete-*|terminate-*|deregister-*|purge-*|remove-*|release-*|revoke-*|detach-*|schedule-key-deletion"],
        CLOUD,
    ),
    lasting("gcloud", &["delete|destroy|remove*"], CLOUD),
    lasting("gcloud", &["storage", "rm"], STORE),
    lasting("gsutil", &["rm|rb"], STORE),
    lasting("gsutil", &["rsync", "-d"], STORE),
    lasting("bq", &["rm"], DATA),
    lasting("az", &["delete|delete-batch|purge|remove"], CLOUD),
    lasting("doctl ibmcloud linode-cli hcloud scw exo oci", &["delete|rm|remove|destroy"], CLOUD),
    lasting("heroku", &["apps:destroy|pg:reset|destroy|addons:destroy|*:destroy"], CLOUD),
    lasting("fly flyctl railway render", &["destroy|delete|down"], CLOUD),
    lasting("vercel now netlify", &["remove|rm|sites:delete|delete"], CLOUD),
    lasting("firebase", &["*:delete|*:disable"], CLOUD),
    lasting("wrangler", &["delete"], CLOUD),
    lasting("supabase", &["reset|delete"], DATABASE),
    lasting("rclone", &["purge|delete|deletefile|sync|rmdirs|cleanup"], STORE),
    lasting("mc", &["rm|rb", "--recursive|--force|-r"], STORE),
    lasting("s3cmd", &["del|rb|rm"], STORE),
    lasting(
        "rsync",
        &["--delete|--delete-*|--del|--remove-source-files"],
        "it deletes files at its target or its source",
    ),
    // Containers: images and volumes lie outside the workspace.
    lasting("docker podman nerdctl", &["system", "prune"], CONTAINERS),
    lasting("docker podman nerdctl", &["volume", "rm|remove|prune"], "it deletes stored data"),
    lasting("docker podman nerdctl", &["container|image|builder|network", "prune"], CONTAINERS),
    lasting("docker podman nerdctl", &["compose", "down|rm", "-v|--volumes"], "it deletes stored data"),
    lasting("docker-compose podman-compose", &["down|rm", "-v|--volumes"], "it deletes stored data"),
    lasting("docker podman nerdctl", &["rm", "-v|-fv|-vf|--volumes"], "it deletes stored data"),
    lasting("docker", &["swarm", "leave"], CLUSTER),
    // Publications.
    lasting("npm pnpm yarn bun cargo poetry uv flit hatch pdm lerna vsce ovsx", &["publish"], PUBLISHES),
    lasting("npm pnpm yarn", &["unpublish|deprecate"], PUBLISHED),
    lasting("cargo", &["yank"], PUBLISHED),
    lasting("gem", &["push"], PUBLISHES),
    lasting("gem", &["yank"], PUBLISHED),
    lasting("twine", &["upload"], PUBLISHES),
    lasting("mvn mvnw", &["deploy|release:perform"], PUBLISHES),
    lasting("gradle gradlew", &["publish|publishAll*|*:publish"], PUBLISHES),
    lasting("dotnet", &["nuget", "push"], PUBLISHES),
    lasting("nuget", &["push"], PUBLISHES),
    lasting("dart flutter", &["pub", "publish"], PUBLISHES),
    lasting("mix", &["hex.publish"], PUBLISHES),
    lasting("goreleaser semantic-release", &["release"], PUBLISHES),
    lasting(
        "gh glab",
        &["repo|release|secret|variable|gist|cache|run|label|issue|ssh-key|gpg-key", "delete|delete-asset"],
        "it deletes on the server of the repository",
    ),
    lasting("gh", &["repo", "archive|rename"], "it changes the repository on its server"),
    lasting("gh", &["api", "DELETE"], "it deletes on the server of the repository"),
    // Databases.
    lasting("dropdb dropuser", &[], DATABASE),
    lasting("mysqladmin", &["drop"], DATABASE),
    lasting("redis-cli valkey-cli", &["flushall|flushdb|FLUSHALL|FLUSHDB"], DATA),
    lasting("mongosh mongo", &["*dropDatabase*|*.drop(*|*deleteMany*"], DATA),
    lasting("rails rake bin/rails", &["db:drop*|db:reset*|db:purge*|db:schema:load*"], DATABASE),
    lasting("mix", &["ecto.drop|ecto.reset"], DATABASE),
    lasting("prisma", &["migrate|db", "reset|--force-reset|--accept-data-loss"], DATABASE),
    lasting("sequelize typeorm", &["db:drop|schema:drop|db:migrate:undo:all"], DATABASE),
    lasting("artisan", &["migrate:fresh|migrate:reset|db:wipe"], DATABASE),
    lasting("php", &["*artisan", "migrate:fresh|migrate:reset|db:wipe"], DATABASE),
    lasting("manage.py", &["flush|reset_db"], DATA),
    lasting("python", &["*manage.py", "flush|reset_db"], DATA),
    lasting("dvc", &["gc"], "it deletes stored data"),
    // Disks.
    Lasting {
        unless: "-l --list -d --dump -p --print print -n --no-act --help",
        ..lasting("wipefs blkdiscard mkswap sgdisk sfdisk fdisk parted cfdisk gdisk", &["/dev/*"], DISK)
    },
    lasting("cryptsetup", &["luksFormat|luksErase|erase|luksRemoveKey|luksKillSlot"], DISK),
    lasting("lvremove vgremove pvremove", &[], DISK),
    lasting("zpool zfs", &["destroy|labelclear"], DISK),
    lasting("btrfs", &["subvolume", "delete"], DISK),
    lasting("mdadm", &["--zero-superblock"], DISK),
    lasting("nvme hdparm", &["format|sanitize|--security-erase*"], DISK),
    lasting(
        "tee cp mv",
        &["/dev/sd*|/dev/nvme*|/dev/vd*|/dev/xvd*|/dev/mmcblk*|/dev/mapper/*|/dev/disk/*"],
        "it overwrites a disk",
    ),
    lasting("shred wipe srm scrub", &[], "it destroys files"),
    // The system, its users and their keys.
    lasting("crontab", &["-r|-ri"], "it deletes the whole crontab"),
    lasting("atrm", &[], "it deletes planned jobs"),
    lasting("userdel deluser", &[], "it deletes a user"),
    lasting("shutdown reboot poweroff halt", &[], "it stops the machine"),
    lasting("systemctl", &["reboot|poweroff|halt|kexec"], "it stops the machine"),
    lasting("kill", &["-9|-15|-KILL|-TERM|-s|--", "-1"], "it stops every process of the user"),
    lasting("iptables ip6tables", &["-F|--flush|-X"], SYSTEM),
    lasting("nft", &["flush"], SYSTEM),
    lasting("ufw", &["reset"], SYSTEM),
    lasting("gpg gpg2", &["--delete-secret*|--delete-key*"], SECRETS),
    lasting("vault", &["delete|destroy"], SECRETS),
    lasting("op pass gopass", &["delete|rm"], SECRETS),
    lasting("security", &["delete-*"], SECRETS),
    // History of git that no reflog holds any longer.
    lasting("git", &["reflog", "expire|delete"], HISTORY),
    lasting("git", &["gc|prune", "--prune=now|--prune=all|--expire=now|--expire=all"], HISTORY),
    lasting("git", &["filter-branch|filter-repo"], HISTORY),
    lasting("git-filter-repo bfg", &[], HISTORY),
    lasting("git", &["update-ref", "-d|--delete|--stdin"], HISTORY),
    lasting("git", &["worktree", "remove", "-f|--force"], "it throws away uncommitted changes"),
    lasting("git", &["submodule", "deinit", "-f|--force|--all"], "it throws away uncommitted changes"),
    lasting("git", &["lfs", "prune"], HISTORY),
    lasting("jj", &["op|operation", "abandon"], HISTORY),
    lasting("hg", &["strip|purge"], HISTORY),
];

/// What this command does that lasts, as a clause.
pub(super) fn of(program: &str, words: &[&str]) -> Option<&'static str> {
    let is_shown = |it: &Lasting| words.iter().any(|word| it.unless.split(' ').any(|unless| unless == *word));
    LASTING.iter().find(|it| it.is_of(program) && it.stands_in(words) && !is_shown(it)).map(|it| it.what)
}

/// What commands that begin with these words may do that lasts. `is_open` where further words may follow.
pub(super) fn reached(program: &str, words: &[&str], is_open: bool) -> Option<&'static str> {
    let reaches = |it: &Lasting| {
        // The words that the rule spells are those of the command, in their order, as far as they go.
        let spells = words.iter().filter(|word| !word.starts_with('-')).zip(it.words);
        it.is_of(program)
            && (it.stands_in(words) || (is_open && spells.into_iter().all(|(word, wanted)| is_one(wanted, word))))
    };
    LASTING.iter().find(|it| reaches(it)).map(|it| it.what)
}

impl Lasting {
    fn is_of(&self, program: &str) -> bool {
        self.programs.split(' ').any(|it| it == program)
    }

    fn stands_in(&self, words: &[&str]) -> bool {
        let mut rest = words.iter();
        self.words.iter().all(|wanted| rest.any(|word| is_one(wanted, word)))
    }
}

/// Whether a word is one of these alternatives.
fn is_one(wanted: &str, word: &str) -> bool {
    wanted.split('|').any(|wanted| match (wanted.strip_prefix('*'), wanted.strip_suffix('*')) {
        (Some(_), Some(_)) => word.contains(wanted.trim_matches('*')),
        (Some(end), None) => word.ends_with(end),
        (None, Some(start)) => word.starts_with(start),
        (None, None) => word == wanted,
    })
}

/// What a text in SQL deletes, as a clause.
pub(super) fn of_sql(text: &str) -> Option<&'static str> {
    let plain: String = text.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    let mut statements = plain.split(';').map(str::trim);
    statements.find_map(|it| match it {
        _ if it.contains("drop database") || it.contains("drop schema") => Some(DATABASE),
        _ if it.contains("drop table") || it.contains("drop column") || it.starts_with("truncate") => Some(DATA),
        _ if it.starts_with("delete from") && !it.contains(" where ") => Some(DATA),
        _ => None,
    })
}
