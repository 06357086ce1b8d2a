//! The table of protected names.
//!
//! A name is here if its file runs by itself, or instructs an agent, when the user does an ordinary thing in the folder:
//! opens it in an editor or with an agent, enters it with a shell, starts an interactive program there, uses git, or pushes
//! it to CI. Also here are settings that make a tool run another program than the one that the user named.
//!
//! What the user runs knowingly is not here, because pixir would then ask about every change of a program: `Makefile`,
//! `package.json`, `build.rs`, `conftest.py`, `pyproject.toml`, `Dockerfile`, the settings of linters and test runners
//! (`.pylintrc`, `eslint.config.js`, `.rspec`), and of hosts that build a site from those (`netlify.toml`). Neither is what
//! only chooses a version or a layout (`.tool-versions`, `.editorconfig`), nor what programs write in their ordinary work
//! (`.svn`).

use protocol::protected::Group;
use protocol::protected::Group::{Agents, Ci, Editors, Git, Keys, Packages, Pixir, Shells};

/// What a name matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A folder with all that is in it, at any depth; or a file of this name.
    Folder,
    /// A file, at any depth.
    File,
    /// A file or a folder by its last names, at any depth.
    Place,
    /// Files whose names end so.
    Ending,
}

/// A protected name.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) kind: Kind,
    /// In lower case.
    pub(super) name: &'static str,
    /// As it is usually written.
    pub(super) spelled: &'static str,
    pub(super) group: Group,
    /// Where it is documented that the file has this effect.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it is for the reader of the table; a test holds each row to one")
    )]
    source: &'static str,
}

const fn row(kind: Kind, group: Group, name: &'static str, source: &'static str) -> Name {
    Name { kind, name, spelled: name, group, source }
}

const fn folder(group: Group, name: &'static str, source: &'static str) -> Name {
    row(Kind::Folder, group, name, source)
}

const fn file(group: Group, name: &'static str, source: &'static str) -> Name {
    row(Kind::File, group, name, source)
}

const fn place(group: Group, name: &'static str, source: &'static str) -> Name {
    row(Kind::Place, group, name, source)
}

const fn ending(group: Group, name: &'static str, source: &'static str) -> Name {
    row(Kind::Ending, group, name, source)
}

impl Name {
    const fn spelled(self, spelled: &'static str) -> Name {
        Name { spelled, ..self }
    }
}

const GIT: &str = "https://git-scm.com/docs/gitrepository-layout";
const LEFTHOOK: &str = "https://lefthook.dev/configuration/";
const COPILOT: &str = "https://docs.github.com/en/copilot/how-tos/configure-custom-instructions";
const CLINE: &str = "https://docs.cline.bot/features/cline-rules";
const ROO: &str = "https://docs.roocode.com/features/custom-instructions";
const OPENCODE: &str = "https://opencode.ai/docs/config/";
const CRUSH: &str = "https://github.com/charmbracelet/crush";
const CODEX: &str = "https://developers.openai.com/codex/guides/agents-md";
const CLAUDE: &str = "https://docs.claude.com/en/docs/claude-code/memory";
const AIDER: &str = "https://aider.chat/docs/config/aider_conf.html";
const ZED: &str = "https://zed.dev/docs/ai/rules";
const MISE: &str = "https://mise.jdx.dev/configuration.html";
const AUTOENV: &str = "https://github.com/hyperupcall/autoenv";
const BASH: &str = "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html";
const ZSH: &str = "https://zsh.sourceforge.io/Doc/Release/Files.html";
const CSH: &str = "https://man.openbsd.org/csh.1";
const KSH: &str = "https://man.openbsd.org/ksh.1";
const X11: &str = "https://wiki.debian.org/Xsession";
const XDG: &str = "https://specifications.freedesktop.org/autostart-spec/latest/";
const VIM: &str = "https://vimhelp.org/starting.txt.html";
const NVIM: &str = "https://neovim.io/doc/user/options.html#'exrc'";
const EMACS: &str = "https://www.gnu.org/software/emacs/manual/html_node/emacs/Directory-Variables.html";
const EMACS_INIT: &str = "https://www.gnu.org/software/emacs/manual/html_node/emacs/Find-Init.html";
const HELIX: &str = "https://docs.helix-editor.com/configuration.html";
const DEVCONTAINER: &str = "https://containers.dev/implementors/spec/";
const DRONE: &str = "https://docs.drone.io/pipeline/overview/";
const WOODPECKER: &str = "https://woodpecker-ci.org/docs/usage/workflows";
const APPVEYOR: &str = "https://www.appveyor.com/docs/build-configuration/";
const CIRRUS: &str = "https://cirrus-ci.org/guide/writing-tasks/";
const ZUUL: &str = "https://zuul-ci.org/docs/zuul/latest/project-config.html";
const CLOUD_BUILD: &str = "https://cloud.google.com/build/docs/build-config-file-schema";
const READ_THE_DOCS: &str = "https://docs.readthedocs.com/platform/stable/config-file/v2.html";
const YARN: &str = "https://yarnpkg.com/configuration/yarnrc";
const PNPM: &str = "https://pnpm.io/pnpmfile";
const MAVEN: &str = "https://maven.apache.org/configure.html";
const MAVEN_WRAPPER: &str = "https://maven.apache.org/wrapper/";
const GRADLE: &str = "https://docs.gradle.org/current/userguide/gradle_wrapper.html";
const CARGO: &str = "https://doc.rust-lang.org/cargo/reference/config.html";
const RUSTUP: &str = "https://rust-lang.github.io/rustup/overrides.html";
const PYTHON_SITE: &str = "https://docs.python.org/3/library/site.html";
const R: &str = "https://stat.ethz.ch/R-manual/R-devel/library/base/html/Startup.html";
const SSH: &str = "https://man.openbsd.org/ssh_config.5";
const OWN: &str = "docs/guide/configuration.md";

/// The table. Where a path has several such names, the first row counts.
pub(super) const NAMES: &[Name] = &[
    // pixir itself.
    folder(Pixir, ".pixir", OWN),
    place(Pixir, ".config/pixir", OWN),
    place(Pixir, ".local/state/pixir", OWN),
    // Keys, and who may log in.
    folder(Keys, ".ssh", SSH),
    folder(Keys, ".gnupg", "https://www.gnupg.org/documentation/manuals/gnupg/GPG-Configuration.html"),
    file(Keys, ".netrc", "https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html"),
    // Git, other version control, and hooks.
    folder(Git, ".git", GIT),
    folder(Git, ".husky", "https://typicode.github.io/husky/"),
    folder(Git, ".githooks", "https://git-scm.com/docs/githooks"),
    folder(Git, ".git-hooks", "https://github.com/sds/overcommit#repo-specific-hooks"),
    folder(Git, ".lefthook", LEFTHOOK),
    folder(Git, ".lefthook-local", LEFTHOOK),
    folder(Git, ".subversion", "https://svnbook.red-bean.com/en/1.7/svn.advanced.confarea.html"),
    file(Git, ".gitmodules", "https://git-scm.com/docs/gitmodules"),
    file(Git, ".gitattributes", "https://git-scm.com/docs/gitattributes"),
    file(Git, ".gitconfig", "https://git-scm.com/docs/git-config"),
    file(Git, ".lfsconfig", "https://github.com/git-lfs/git-lfs/blob/main/docs/man/git-lfs-config.adoc"),
    file(Git, ".pre-commit-config.yaml", "https://pre-commit.com/"),
    file(Git, ".pre-commit-config.yml", "https://prek.j178.dev/configuration/"),
    file(Git, "prek.toml", "https://prek.j178.dev/configuration/"),
    file(Git, ".overcommit.yml", "https://github.com/sds/overcommit#configuration"),
    file(Git, "captainhook.json", "https://github.com/captainhook-git/captainhook"),
    file(Git, "grumphp.yml", "https://github.com/phpro/grumphp"),
    file(Git, "lefthook.yml", LEFTHOOK),
    file(Git, "lefthook.yaml", LEFTHOOK),
    file(Git, "lefthook.json", LEFTHOOK),
    file(Git, "lefthook.jsonc", LEFTHOOK),
    file(Git, "lefthook.toml", LEFTHOOK),
    file(Git, "lefthook-local.yml", LEFTHOOK),
    file(Git, "lefthook-local.yaml", LEFTHOOK),
    file(Git, "lefthook-local.json", LEFTHOOK),
    file(Git, "lefthook-local.jsonc", LEFTHOOK),
    file(Git, "lefthook-local.toml", LEFTHOOK),
    file(Git, ".lefthook.yml", LEFTHOOK),
    file(Git, ".lefthook.yaml", LEFTHOOK),
    file(Git, ".lefthook.json", LEFTHOOK),
    file(Git, ".lefthook.jsonc", LEFTHOOK),
    file(Git, ".lefthook.toml", LEFTHOOK),
    file(Git, ".lefthook-local.yml", LEFTHOOK),
    file(Git, ".lefthook-local.yaml", LEFTHOOK),
    file(Git, ".lefthook-local.json", LEFTHOOK),
    file(Git, ".lefthook-local.jsonc", LEFTHOOK),
    file(Git, ".lefthook-local.toml", LEFTHOOK),
    file(Git, ".hgrc", "https://www.mercurial-scm.org/doc/hgrc.5.html"),
    file(Git, ".jjconfig.toml", "https://docs.jj-vcs.dev/latest/config/"),
    place(Git, ".config/git", "https://git-scm.com/docs/git-config"),
    place(Git, ".config/jj", "https://docs.jj-vcs.dev/latest/config/"),
    place(Git, ".hg/hgrc", "https://www.mercurial-scm.org/doc/hgrc.5.html"),
    place(Git, ".hg/hgrc-not-shared", "https://www.mercurial-scm.org/doc/hgrc.5.html"),
    place(Git, ".jj/repo/config.toml", "https://docs.jj-vcs.dev/latest/config/"),
    place(Git, ".jj/workspace-config.toml", "https://docs.jj-vcs.dev/latest/config/"),
    place(Git, ".sl/config", "https://sapling-scm.com/docs/introduction/getting-started"),
    // CI.
    folder(Ci, ".circleci", "https://circleci.com/docs/configuration-reference/"),
    folder(Ci, ".buildkite", "https://buildkite.com/docs/pipelines/configure/defining-steps"),
    folder(Ci, ".woodpecker", WOODPECKER),
    folder(Ci, ".azure-pipelines", "https://learn.microsoft.com/en-us/azure/devops/pipelines/yaml-schema/"),
    folder(Ci, ".semaphore", "https://docs.semaphore.io/reference/pipeline-yaml"),
    folder(Ci, ".teamcity", "https://www.jetbrains.com/help/teamcity/kotlin-dsl.html"),
    folder(Ci, ".tekton", "https://pipelinesascode.com/docs/guide/authoringprs/"),
    folder(Ci, ".harness", "https://developer.harness.io/docs/platform/git-experience/git-experience-overview/"),
    folder(Ci, ".builds", "https://man.sr.ht/builds.sr.ht/"),
    folder(Ci, ".zuul.d", ZUUL),
    folder(Ci, "zuul.d", ZUUL),
    file(Ci, ".gitlab-ci.yml", "https://docs.gitlab.com/ci/yaml/"),
    file(Ci, ".gitlab-ci.yaml", "https://docs.gitlab.com/ci/yaml/"),
    file(Ci, ".travis.yml", "https://docs.travis-ci.com/user/build-stages/"),
    file(Ci, "azure-pipelines.yml", "https://learn.microsoft.com/en-us/azure/devops/pipelines/yaml-schema/"),
    file(Ci, "azure-pipelines.yaml", "https://learn.microsoft.com/en-us/azure/devops/pipelines/yaml-schema/"),
    file(Ci, "jenkinsfile", "https://www.jenkins.io/doc/book/pipeline/jenkinsfile/").spelled("Jenkinsfile"),
    file(Ci, ".drone.yml", DRONE),
    file(Ci, ".drone.yaml", DRONE),
    file(Ci, ".drone.jsonnet", DRONE),
    file(Ci, ".drone.star", DRONE),
    file(
        Ci,
        "bitbucket-pipelines.yml",
        "https://support.atlassian.com/bitbucket-cloud/docs/bitbucket-pipelines-configuration-reference/",
    ),
    file(Ci, "buildkite.yml", "https://buildkite.com/docs/pipelines/configure/defining-steps"),
    file(Ci, "appveyor.yml", APPVEYOR),
    file(Ci, ".appveyor.yml", APPVEYOR),
    file(Ci, ".woodpecker.yml", WOODPECKER),
    file(Ci, ".woodpecker.yaml", WOODPECKER),
    file(Ci, ".cirrus.yml", CIRRUS),
    file(Ci, ".cirrus.star", CIRRUS),
    file(Ci, "cloudbuild.yaml", CLOUD_BUILD),
    file(Ci, "cloudbuild.yml", CLOUD_BUILD),
    file(Ci, "cloudbuild.json", CLOUD_BUILD),
    file(Ci, "buildspec.yml", "https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html"),
    file(Ci, "buildspec.yaml", "https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html"),
    file(Ci, ".build.yml", "https://man.sr.ht/builds.sr.ht/"),
    file(Ci, "codemagic.yaml", "https://docs.codemagic.io/yaml-basic-configuration/yaml-getting-started/"),
    file(Ci, "bitrise.yml", "https://docs.bitrise.io/"),
    file(Ci, ".onedev-buildspec.yml", "https://docs.onedev.io/concepts#build-spec"),
    file(Ci, ".zuul.yaml", ZUUL),
    file(Ci, "zuul.yaml", ZUUL),
    file(Ci, ".readthedocs.yaml", READ_THE_DOCS),
    file(Ci, ".readthedocs.yml", READ_THE_DOCS),
    place(
        Ci,
        ".github/workflows",
        "https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax",
    ),
    place(Ci, ".github/actions", "https://docs.github.com/en/actions/reference/workflows-and-actions/metadata-syntax"),
    place(Ci, ".forgejo/workflows", "https://forgejo.org/docs/latest/user/actions/"),
    place(Ci, ".forgejo/actions", "https://forgejo.org/docs/latest/user/actions/"),
    place(Ci, ".gitea/workflows", "https://docs.gitea.com/usage/actions/overview"),
    place(Ci, ".gitea/actions", "https://docs.gitea.com/usage/actions/overview"),
    place(Ci, ".gitlab/ci", "https://docs.gitlab.com/ci/yaml/includes/"),
    place(Ci, ".gitlab/agents", "https://docs.gitlab.com/user/clusters/agent/"),
    // Agents.
    folder(Agents, ".agents", "https://agents.md/"),
    folder(Agents, ".claude", CLAUDE),
    folder(Agents, ".cursor", "https://docs.cursor.com/context/rules"),
    folder(Agents, ".codex", CODEX),
    folder(Agents, ".gemini", "https://geminicli.com/docs/get-started/configuration/"),
    folder(Agents, ".windsurf", "https://docs.windsurf.com/windsurf/cascade/memories"),
    folder(Agents, ".roo", ROO),
    folder(Agents, ".continue", "https://docs.continue.dev/customize/deep-dives/rules"),
    folder(Agents, ".junie", "https://www.jetbrains.com/help/junie/customize-guidelines.html"),
    folder(Agents, ".aiassistant", "https://www.jetbrains.com/help/ai-assistant/configure-project-rules.html"),
    folder(Agents, ".kiro", "https://kiro.dev/docs/steering/"),
    folder(Agents, ".amazonq", "https://docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/context-project-rules.html"),
    folder(Agents, ".goose", "https://block.github.io/goose/docs/guides/context-engineering/using-goosehints/"),
    folder(Agents, ".opencode", OPENCODE),
    folder(Agents, ".crush", CRUSH),
    folder(Agents, ".qwen", "https://qwenlm.github.io/qwen-code-docs/"),
    folder(Agents, ".augment", "https://docs.augmentcode.com/setup-augment/guidelines"),
    folder(Agents, ".kilocode", "https://kilocode.ai/docs/advanced-usage/custom-rules"),
    folder(Agents, ".trae", "https://docs.trae.ai/ide/rules"),
    folder(Agents, ".tabnine", "https://docs.tabnine.com/main/getting-started/tabnine-agent/guidelines"),
    folder(Agents, ".amp", "https://ampcode.com/manual"),
    folder(Agents, ".factory", "https://docs.factory.ai/cli/configuration/settings"),
    folder(Agents, ".openhands", "https://docs.all-hands.dev/usage/prompting/microagents-overview"),
    folder(Agents, ".zencoder", "https://docs.zencoder.ai/rules-context/zen-rules"),
    folder(Agents, ".lingma", "https://help.aliyun.com/zh/lingma/user-guide/ruless"),
    folder(Agents, ".cline", CLINE),
    folder(Agents, ".clinerules", CLINE),
    folder(Agents, ".cursorrules", "https://docs.cursor.com/context/rules"),
    folder(Agents, ".windsurfrules", "https://docs.windsurf.com/windsurf/cascade/memories"),
    folder(Agents, ".roorules", ROO),
    folder(Agents, ".kilocoderules", "https://kilocode.ai/docs/advanced-usage/custom-rules"),
    file(Agents, ".roomodes", "https://docs.roocode.com/features/custom-modes"),
    file(Agents, ".kilocodemodes", "https://kilocode.ai/docs/agent-behavior/custom-modes"),
    file(Agents, ".mcp.json", "https://docs.claude.com/en/docs/claude-code/mcp"),
    file(Agents, "agents.md", "https://agents.md/").spelled("AGENTS.md"),
    file(Agents, "agent.md", "https://ampcode.com/manual").spelled("AGENT.md"),
    file(Agents, "agents.override.md", CODEX).spelled("AGENTS.override.md"),
    file(Agents, "agents.local.md", "https://agents.md/").spelled("AGENTS.local.md"),
    file(Agents, "claude.md", CLAUDE).spelled("CLAUDE.md"),
    file(Agents, "claude.local.md", CLAUDE).spelled("CLAUDE.local.md"),
    file(Agents, "gemini.md", "https://geminicli.com/docs/cli/gemini-md/").spelled("GEMINI.md"),
    file(Agents, "qwen.md", "https://qwenlm.github.io/qwen-code-docs/").spelled("QWEN.md"),
    file(Agents, "crush.md", CRUSH).spelled("CRUSH.md"),
    file(Agents, "crush.local.md", CRUSH).spelled("CRUSH.local.md"),
    file(Agents, "warp.md", "https://docs.warp.dev/knowledge-and-collaboration/rules").spelled("WARP.md"),
    file(Agents, "replit.md", "https://docs.replit.com/replitai/replit-dot-md"),
    file(Agents, "crush.json", CRUSH),
    file(Agents, ".crush.json", CRUSH),
    file(Agents, "opencode.json", OPENCODE),
    file(Agents, "opencode.jsonc", OPENCODE),
    file(Agents, ".continuerc.json", "https://docs.continue.dev/reference"),
    file(Agents, ".goosehints", "https://block.github.io/goose/docs/guides/context-engineering/using-goosehints/"),
    file(Agents, ".augment-guidelines", "https://docs.augmentcode.com/setup-augment/guidelines"),
    file(Agents, ".openhands_instructions", "https://docs.all-hands.dev/usage/prompting/microagents-overview"),
    file(Agents, ".rules", ZED),
    file(Agents, ".aider.conf.yml", AIDER),
    file(Agents, ".aider.conf.yaml", AIDER),
    file(Agents, ".aider.model.settings.yml", "https://aider.chat/docs/config/adv-model-settings.html"),
    file(Agents, ".aider.model.metadata.json", "https://aider.chat/docs/config/adv-model-settings.html"),
    place(
        Agents,
        ".aws/amazonq",
        "https://docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/command-line-custom-agents.html",
    ),
    place(Agents, ".github/copilot-instructions.md", COPILOT),
    place(Agents, ".github/instructions", COPILOT),
    place(Agents, ".github/prompts", COPILOT),
    place(Agents, ".github/chatmodes", COPILOT),
    place(Agents, ".github/agents", COPILOT),
    place(Agents, ".github/skills", COPILOT),
    place(Agents, ".github/hooks", COPILOT),
    place(Agents, ".gitlab/duo", "https://docs.gitlab.com/user/gitlab_duo/customize_duo/"),
    // Editors.
    folder(Editors, ".vscode", "https://code.visualstudio.com/docs/editor/workspace-trust"),
    folder(Editors, ".devcontainer", DEVCONTAINER),
    folder(Editors, ".idea", "https://www.jetbrains.com/help/idea/project-security.html"),
    folder(Editors, ".fleet", "https://www.jetbrains.com/help/fleet/run-configurations.html"),
    folder(Editors, ".zed", "https://zed.dev/docs/configuring-zed"),
    folder(Editors, ".helix", HELIX),
    folder(Editors, ".vim", VIM),
    folder(Editors, ".emacs.d", EMACS_INIT),
    folder(Editors, ".idx", "https://firebase.google.com/docs/studio/customize-workspace"),
    folder(Editors, ".codesandbox", "https://codesandbox.io/docs/learn/repositories/task"),
    ending(Editors, ".code-workspace", "https://code.visualstudio.com/docs/editor/workspaces"),
    file(Editors, ".devcontainer.json", DEVCONTAINER),
    file(Editors, ".gitpod.yml", "https://www.gitpod.io/docs/classic/user/references/gitpod-yml"),
    file(Editors, ".stackblitzrc", "https://developer.stackblitz.com/platform/webcontainers/project-config"),
    file(Editors, ".vimrc", VIM),
    file(Editors, ".gvimrc", VIM),
    file(Editors, ".exrc", VIM),
    file(Editors, ".nvimrc", NVIM),
    file(Editors, ".nvim.lua", NVIM),
    file(Editors, ".emacs", EMACS_INIT),
    file(Editors, ".dir-locals.el", EMACS),
    file(Editors, ".dir-locals-2.el", EMACS),
    file(Editors, ".ycm_extra_conf.py", "https://github.com/ycm-core/YouCompleteMe#general-semantic-completion"),
    file(Editors, ".luarc.json", "https://luals.github.io/wiki/plugins/"),
    file(Editors, ".luarc.jsonc", "https://luals.github.io/wiki/plugins/"),
    file(Editors, "hie.yaml", "https://github.com/haskell/hie-bios"),
    file(Editors, "rust-analyzer.toml", "https://rust-analyzer.github.io/book/configuration.html"),
    file(Editors, ".rust-analyzer.toml", "https://rust-analyzer.github.io/book/configuration.html"),
    place(Editors, ".config/nvim", NVIM),
    place(Editors, ".config/helix", HELIX),
    place(Editors, ".config/emacs", EMACS_INIT),
    place(Editors, ".config/zed", "https://zed.dev/docs/configuring-zed"),
    place(Editors, ".yarn/sdks", "https://yarnpkg.com/getting-started/editor-sdks"),
    // Shells, desktops and interactive programs.
    folder(Shells, ".direnv", "https://github.com/nix-community/nix-direnv"),
    folder(Shells, ".mise", MISE),
    file(Shells, ".envrc", "https://direnv.net/man/direnv.1.html"),
    file(Shells, ".direnvrc", "https://direnv.net/man/direnv.toml.1.html"),
    file(Shells, "mise.toml", MISE),
    file(Shells, ".mise.toml", MISE),
    file(Shells, "mise.local.toml", MISE),
    file(Shells, ".mise.local.toml", MISE),
    file(Shells, ".rtx.toml", MISE),
    file(Shells, ".autoenv", AUTOENV),
    file(Shells, ".autoenv.leave", AUTOENV),
    file(Shells, ".env.leave", AUTOENV),
    file(Shells, ".autoenv.zsh", "https://github.com/Tarrasch/zsh-autoenv"),
    file(Shells, ".autoenv_leave.zsh", "https://github.com/Tarrasch/zsh-autoenv"),
    file(Shells, ".rvmrc", "https://rvm.io/workflow/rvmrc"),
    file(Shells, ".bashrc", BASH),
    file(Shells, ".bash_profile", BASH),
    file(Shells, ".bash_login", BASH),
    file(Shells, ".bash_logout", BASH),
    file(Shells, ".bash_aliases", BASH),
    file(Shells, ".profile", BASH),
    file(Shells, ".inputrc", "https://www.gnu.org/software/bash/manual/html_node/Readline-Init-File.html"),
    file(Shells, ".zshrc", ZSH),
    file(Shells, ".zshenv", ZSH),
    file(Shells, ".zprofile", ZSH),
    file(Shells, ".zlogin", ZSH),
    file(Shells, ".zlogout", ZSH),
    file(Shells, ".kshrc", KSH),
    file(Shells, ".mkshrc", KSH),
    file(Shells, ".cshrc", CSH),
    file(Shells, ".tcshrc", CSH),
    file(Shells, ".login", CSH),
    file(Shells, ".logout", CSH),
    file(Shells, ".xprofile", X11),
    file(Shells, ".xinitrc", X11),
    file(Shells, ".xsession", X11),
    file(Shells, ".xsessionrc", X11),
    file(Shells, ".pam_environment", "https://man7.org/linux/man-pages/man8/pam_env.8.html"),
    file(Shells, ".pythonrc", "https://docs.python.org/3/using/cmdline.html#envvar-PYTHONSTARTUP"),
    file(Shells, ".pythonrc.py", "https://docs.python.org/3/using/cmdline.html#envvar-PYTHONSTARTUP"),
    file(Shells, ".pdbrc", "https://docs.python.org/3/library/pdb.html#debugger-commands"),
    file(Shells, ".pdbrc.py", "https://github.com/pdbpp/pdbpp#configuration-and-customization"),
    file(Shells, ".irbrc", "https://ruby.github.io/irb/Configurations_md.html"),
    file(Shells, ".pryrc", "https://github.com/pry/pry/wiki/Pry-rc"),
    file(Shells, ".rdbgrc", "https://github.com/ruby/debug#configuration"),
    file(Shells, ".byebugrc", "https://github.com/deivid-rodriguez/byebug/blob/main/GUIDE.md"),
    file(
        Shells,
        ".gdbinit",
        "https://sourceware.org/gdb/current/onlinedocs/gdb.html/Init-File-in-the-Current-Directory.html",
    ),
    file(Shells, ".lldbinit", "https://lldb.llvm.org/man/lldb.html#configuration-files"),
    file(Shells, ".perldb", "https://perldoc.perl.org/perldebug#Debugger-Customization"),
    file(Shells, ".jdbrc", "https://docs.oracle.com/en/java/javase/21/docs/specs/man/jdb.html"),
    file(Shells, ".ghci", "https://downloads.haskell.org/ghc/latest/docs/users_guide/ghci.html#the-ghci-files"),
    file(Shells, ".ocamlinit", "https://ocaml.org/manual/latest/toplevel.html"),
    file(Shells, ".iex.exs", "https://hexdocs.pm/iex/IEx.html#module-the-iex-exs-file"),
    file(Shells, ".erlang", "https://www.erlang.org/doc/apps/erts/erl_cmd.html#configuration"),
    file(Shells, ".octaverc", "https://docs.octave.org/latest/Startup-Files.html"),
    file(Shells, ".rprofile", R).spelled(".Rprofile"),
    file(Shells, ".renviron", R).spelled(".Renviron"),
    file(Shells, ".sqliterc", "https://sqlite.org/cli.html#reading_sql_from_a_file"),
    file(Shells, ".psqlrc", "https://www.postgresql.org/docs/current/app-psql.html#APP-PSQL-FILES"),
    file(Shells, ".my.cnf", "https://dev.mysql.com/doc/refman/8.4/en/option-files.html"),
    file(Shells, ".mongorc.js", "https://www.mongodb.com/docs/mongodb-shell/mongoshrc/"),
    file(Shells, ".mongoshrc.js", "https://www.mongodb.com/docs/mongodb-shell/mongoshrc/"),
    file(Shells, ".screenrc", "https://www.gnu.org/software/screen/manual/html_node/Startup-Files.html"),
    file(Shells, ".tmux.conf", "https://man.openbsd.org/tmux.1"),
    file(Shells, ".wgetrc", "https://www.gnu.org/software/wget/manual/html_node/Wgetrc-Location.html"),
    file(Shells, ".curlrc", "https://curl.se/docs/manpage.html#-K"),
    file(Shells, ".mailcap", "https://www.rfc-editor.org/rfc/rfc1524"),
    place(Shells, ".config/autostart", XDG),
    place(
        Shells,
        ".config/environment.d",
        "https://www.freedesktop.org/software/systemd/man/latest/environment.d.html",
    ),
    place(Shells, ".config/systemd", "https://www.freedesktop.org/software/systemd/man/latest/systemd.unit.html"),
    place(Shells, ".config/fish", "https://fishshell.com/docs/current/language.html#configuration-files"),
    place(Shells, ".config/nushell", "https://www.nushell.sh/book/configuration.html"),
    place(Shells, ".config/direnv", "https://direnv.net/man/direnv.toml.1.html"),
    place(Shells, ".config/mise", MISE),
    place(Shells, ".config/mise.toml", MISE),
    place(Shells, "mise/config.toml", MISE),
    place(Shells, ".config/tmux", "https://man.openbsd.org/tmux.1"),
    // Package and build tools.
    folder(Packages, ".mvn", MAVEN),
    file(Packages, ".npmrc", "https://docs.npmjs.com/cli/configuring-npm/npmrc"),
    file(Packages, ".yarnrc", "https://classic.yarnpkg.com/en/docs/yarnrc"),
    file(Packages, ".yarnrc.yml", YARN),
    file(Packages, ".pnpmfile.cjs", PNPM),
    file(Packages, ".pnpmfile.mjs", PNPM),
    file(Packages, "mvnw", MAVEN_WRAPPER),
    file(Packages, "mvnw.cmd", MAVEN_WRAPPER),
    file(Packages, "gradlew", GRADLE),
    file(Packages, "gradlew.bat", GRADLE),
    file(Packages, ".bazelrc", "https://bazel.build/run/bazelrc"),
    file(Packages, ".buckconfig", "https://buck2.build/docs/concepts/buckconfig/"),
    file(Packages, "rust-toolchain", RUSTUP),
    file(Packages, "rust-toolchain.toml", RUSTUP),
    file(Packages, "sitecustomize.py", PYTHON_SITE),
    file(Packages, "usercustomize.py", PYTHON_SITE),
    file(Packages, ".gemrc", "https://guides.rubygems.org/command-reference/#gem-environment"),
    file(
        Packages,
        ".condarc",
        "https://docs.conda.io/projects/conda/en/stable/user-guide/configuration/use-condarc.html",
    ),
    file(Packages, ".terraformrc", "https://developer.hashicorp.com/terraform/cli/config/config-file"),
    place(Packages, ".cargo/config.toml", CARGO),
    place(Packages, ".cargo/config", CARGO),
    place(Packages, ".yarn/releases", YARN),
    place(Packages, ".yarn/plugins", "https://yarnpkg.com/advanced/plugin-tutorial"),
    place(Packages, "gradle/wrapper", GRADLE),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Broken builds: a row without a source or with a name that is never compared; a group without a name.
    #[test]
    fn every_name_has_a_source_and_a_group_and_is_found_by_it() {
        let mut known = BTreeSet::new();
        for it in NAMES {
            let name = it.name;
            assert!(it.source.starts_with("https://") || it.source == OWN, "{name}: {}", it.source);
            assert_eq!(it.spelled.to_lowercase(), name, "names are compared in lower case");
            assert_eq!(name.contains('/'), it.kind == Kind::Place, "{name}");
            assert!(known.insert(name), "{name} is in the table twice");
            let (inside, at) = match it.kind {
                Kind::Folder | Kind::Place => (format!("sub/{}/x", it.spelled), format!("a/b/{}", it.spelled)),
                Kind::File => (format!("sub/{}", it.spelled), it.spelled.to_owned()),
                Kind::Ending => (format!("sub/x{}", it.spelled), format!("x{}", it.spelled)),
            };
            for path in [inside, at] {
                assert_eq!(super::super::group_of(Path::new(&path)), Some(it.group), "{path}");
            }
        }
        let groups: BTreeSet<Group> = NAMES.iter().map(|it| it.group).collect();
        assert_eq!(groups, Group::ALL.into_iter().collect());
    }

    /// The guide has the table for readers, so a name that is added here is added there.
    ///
    /// Broken build: a row that `docs/guide/permissions.md` does not have, or has in another group.
    #[test]
    fn the_guide_lists_every_name_in_its_group() {
        let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/permissions.md");
        let guide = std::fs::read_to_string(guide).expect("the guide");
        for group in Group::ALL {
            let start = format!("| {} |", group.name());
            let line = guide.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no line {start}"));
            let listed: BTreeSet<&str> = line.split('`').skip(1).step_by(2).collect();
            let names: BTreeSet<&str> = NAMES.iter().filter(|it| it.group == group).map(|it| it.spelled).collect();
            assert_eq!(listed, names, "{}", group.name());
        }
    }
}
