//! The gate: the one place that allows or refuses a prepared call.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::blocked::Blocked;
use super::{Call, Caller, Context, aliases};
use permissions::rules::{danger_of, denies_reading, grave, read_folders};
use permissions::{Bounds, Explained, ONLY_READS, Readable, Ruling, SetBy, Touch, judge};
use protocol::call_info::CallInfo;
use protocol::error::{Code, Error};
use protocol::event::{Approval, Confirmation, DecidedBy, Mode, PermissionDecision, Preview, Rule, Scope, Verdict};
use protocol::input::{Decision, RuleReach};
use protocol::protected::Group;
use protocol::remedy::Remedy;
use sandbox::Policy;

/// The Session has dropped the work that the call belongs to, and records nothing more of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// The mode and rules in force when a call is judged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Permissions {
    /// The mode.
    pub mode: Mode,
    /// The rules that the user made.
    pub rules: Vec<Rule>,
    /// What roles leave: that of the Session, and those above it as far as they hold below.
    pub bounds: Vec<Arc<Bounds>>,
}

/// Supplies the mode and the rules, asks the user for approvals, and records decisions.
pub trait Authority: Sync {
    /// Receives the preview of a call, before the call is judged.
    fn prepared<'a>(
        &'a self,
        call: &'a Call,
        info: &'a CallInfo,
        preview: &'a Preview,
    ) -> BoxFuture<'a, Result<(), Gone>>;

    /// The mode and rules in force now. The gate asks for each call, because the user may change them in between.
    fn permissions(&self) -> BoxFuture<'_, Result<Permissions, Gone>>;

    /// Asks the user for an approval. `None` where no user can answer.
    fn approve(&self, approval: Approval) -> BoxFuture<'_, Result<Option<Decision>, Gone>>;

    /// Saves a rule that the user made by answering "always", for so many seconds or until it is revoked. The answer counts
    /// for its call also where the rule cannot be saved.
    fn keep<'a>(
        &'a self,
        _rule: &'a Rule,
        _holds: RuleReach,
        _seconds: Option<u64>,
    ) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async { Ok(()) })
    }

    /// The call waits until this agent has changed what both change; `None` when it waits no more.
    fn waits_for_lease<'a>(&'a self, _holder: Option<&'a str>) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async { Ok(()) })
    }

    /// Records a decision; the decision is durable when this returns.
    fn record(&self, decision: PermissionDecision) -> BoxFuture<'_, Result<(), Gone>>;
}

/// The authority outside a Session: a fixed mode, fixed rules, no user who could answer, nothing recorded.
#[derive(Debug, Clone, Default)]
pub struct Unattended {
    /// The mode.
    pub mode: Mode,
    /// The rules of the user that hold here.
    pub rules: Vec<Rule>,
}

impl Authority for Unattended {
    fn prepared<'a>(
        &'a self,
        _call: &'a Call,
        _info: &'a CallInfo,
        _plan: &'a Preview,
    ) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async move { Ok(()) })
    }

    fn permissions(&self) -> BoxFuture<'_, Result<Permissions, Gone>> {
        Box::pin(async move { Ok(Permissions { mode: self.mode, rules: self.rules.clone(), bounds: Vec::new() }) })
    }

    fn approve(&self, _approval: Approval) -> BoxFuture<'_, Result<Option<Decision>, Gone>> {
        Box::pin(async move { Ok(None) })
    }

    fn record(&self, _decision: PermissionDecision) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async move { Ok(()) })
    }
}

/// Decides whether every part of a call may run. Parts that need the user's permission share one approval.
///
/// # Errors
/// [`Gone`] when the Session no longer waits for the call. The inner error is the refusal.
///
/// Returns what programs of the call may do.
pub async fn gate(
    call: &Call,
    preview: &Preview,
    touches: &[Touch],
    ctx: &Context,
    authority: &dyn Authority,
) -> Result<Result<Grant, Error>, Gone> {
    // What the user types runs as in the user's own shell.
    let mut policy = if call.caller == Caller::User { Policy::Outside } else { Policy::Work };
    let mut decisions = Vec::new();
    let mut needs_approval: Vec<(String, Option<Rule>)> = Vec::new();
    let mut refusal = None;
    let mut only_looks = false;
    let mut changes = false;
    let mut with_network = false;
    // Allowed already, but not with the network.
    let mut lacks_network: Option<String> = None;
    let mut reads = Vec::new();
    // One question for all files of a group.
    let mut protected: BTreeMap<Group, Vec<&str>> = BTreeMap::new();
    for touch in touches {
        let Permissions { mode, rules, bounds } = authority.permissions().await?;
        // The user may do what the role of the agent may not.
        if call.caller == Caller::Model
            && let Some((by, error)) = refused_by_bounds(call, touch, ctx, &bounds)
        {
            decisions.push(decision(call, Verdict::Deny, by, error.message.clone(), None));
            refusal = Some(error);
            continue;
        }
        if policy == Policy::Work && rules.contains(&Rule::Allow(Scope::Network)) && !rules.contains(&NO_NETWORK) {
            policy = Policy::Network;
        }
        let added = added_folders(touch, &rules, ctx);
        let others = others(&added, &rules, ctx);
        let readable = Readable { others: &others, ..ctx.readable() };
        reads.extend(added);
        // Without it, the call would fail, and the user would be asked then.
        let needs_network = || {
            let may_have = policy == Policy::Work && readable.is_confined && !rules.contains(&NO_NETWORK);
            may_have && permissions::needs_network(touch, readable)
        };
        match judge(mode, touch, &rules, readable) {
            Ruling::Free => {}
            Ruling::Look => {
                only_looks = true;
                decisions.push(decision(call, Verdict::Allow, DecidedBy::Mode, ONLY_READS.into(), None));
            }
            Ruling::Allow { by, rule, reason } => {
                changes |= !touch.only_reads();
                if call.caller == Caller::Model && needs_network() {
                    if by == DecidedBy::Rule && permissions::rules_give_network(touch, &rules, readable) {
                        with_network = true;
                    } else {
                        lacks_network = Some(reason.clone());
                    }
                }
                decisions.push(decision(call, Verdict::Allow, by, reason, rule));
            }
            Ruling::Deny { by, rule, error } => {
                // Whatever mode the user sets, the role leaves only reading.
                let is_of_role = call.caller == Caller::Model && bounds.iter().any(|it| it.only_reads());
                let by = if by == DecidedBy::Mode && is_of_role { DecidedBy::Role } else { by };
                let error = match call.caller {
                    Caller::User if by == DecidedBy::Mode && error.code != Code::PermissionDenied => {
                        Error { remedy: Remedy::SetMode { mode: Mode::Ask }, ..error }
                    }
                    Caller::Model
                        if by == DecidedBy::Role
                            && let Some(bounds) = bounds.iter().find(|it| it.only_reads()) =>
                    {
                        bounds.instead_of_the_mode(error)
                    }
                    Caller::User | Caller::Model => error,
                };
                decisions.push(decision(call, Verdict::Deny, by, error.message.clone(), rule));
                refusal = Some(error);
            }
            Ruling::Ask { .. } if call.caller == Caller::User => {
                changes |= !touch.only_reads();
                decisions.push(decision(call, Verdict::Allow, DecidedBy::User, "the user typed it".into(), None));
            }
            Ruling::Ask { reason, rule } => {
                changes |= !touch.only_reads();
                // Where a rule may deny it besides, the reason says so.
                if let Touch::Files { protected: Some(it), .. } = touch
                    && reason == it.group.reason(&[&it.path])
                {
                    let paths = protected.entry(it.group).or_default();
                    if !paths.contains(&it.path.as_str()) {
                        paths.push(&it.path);
                    }
                } else if needs_network() {
                    with_network = true;
                    needs_approval.push((format!("{reason}, with the network"), rule));
                } else {
                    needs_approval.push((reason, rule));
                }
            }
        }
    }
    needs_approval.extend(protected.iter().map(|(group, paths)| (group.reason(paths), None)));
    // The files may have changed since the call was prepared, so only this verdict counts.
    if only_looks && !changes {
        policy = Policy::Look;
    }
    if refusal.is_none() && !needs_approval.is_empty() {
        let (made, refused) = ask(call, preview, needs_approval, authority).await?;
        decisions.extend(made);
        refusal = refused;
    } else if refusal.is_none()
        && let Some(reason) = lacks_network
    {
        let rule = Rule::Allow(Scope::Network);
        let (made, refused) =
            ask(call, preview, vec![(format!("{reason}, with the network"), Some(rule))], authority).await?;
        // Where no user can be asked, it runs without.
        if made.iter().all(|it| it.by != DecidedBy::NoAsker) {
            with_network = refused.is_none();
            decisions.extend(made);
            refusal = refused;
        }
    }
    if with_network {
        policy = Policy::Network;
    }
    // Decisions are durable before the call runs. Recording one also makes the call's own Entry durable.
    for decision in decisions {
        authority.record(decision).await?;
    }
    Ok(refusal.map_or(Ok(Grant { policy, reads }), Err))
}

/// What programs of an allowed call may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// What they may change.
    pub policy: Policy,
    /// Folders outside the workspace that they see besides. The paths have no symlink in them.
    pub reads: Vec<PathBuf>,
}

/// The folders outside the workspace that the user has added, as far as programs may see them.
fn added_folders(touch: &Touch, rules: &[Rule], ctx: &Context) -> Vec<PathBuf> {
    if touch.command().is_none() {
        return Vec::new();
    }
    read_folders(rules).into_iter().filter(|it| ctx.sandbox.may_add(it)).map(Path::to_owned).collect()
}

/// What lies outside the workspace and a command may read unasked.
fn others(added: &[PathBuf], rules: &[Rule], ctx: &Context) -> Vec<PathBuf> {
    let sources = ctx.readable().others.iter().filter(|it| !denies_reading(rules, it));
    sources.chain(added).cloned().collect()
}

/// Why the role of the agent, or one above it, or a call that started one of them, does not leave this to it. A role comes
/// before a call: without the call the agent still may not.
fn refused_by_bounds(call: &Call, touch: &Touch, ctx: &Context, bounds: &[Arc<Bounds>]) -> Option<(DecidedBy, Error)> {
    if bounds.is_empty() {
        return None;
    }
    let named = aliases::call(call);
    let tool = aliases::tool(&named.tool).unwrap_or(&named.tool);
    // A folder that is a symlink leads to files that have another path.
    let real = match touch {
        Touch::Files { path: Some(path), protected } => {
            &Touch::Files { path: real_path(ctx, path), protected: protected.clone() }
        }
        _ => touch,
    };
    let refusals = bounds.iter().filter_map(|it| Some((decider(&it.by), it.refuses(tool, real, ctx.readable())?)));
    refusals.min_by_key(|(by, _)| *by != DecidedBy::Role)
}

fn decider(by: &SetBy) -> DecidedBy {
    match by {
        SetBy::Role(_) => DecidedBy::Role,
        SetBy::Call => DecidedBy::Task,
    }
}

/// The path of a file without symlinks, relative to the workspace, or absolute in a folder that is worked on as that is; `None`
/// where it leaves them.
fn real_path(ctx: &Context, path: &str) -> Option<String> {
    let root = ctx.workspace.root();
    let path = root.join(path);
    let there = path.ancestors().find_map(|it| Some((it, it.canonicalize().ok()?)));
    let (before, real) = there?;
    let rest = path.strip_prefix(before).ok()?;
    if rest.components().any(|it| !matches!(it, std::path::Component::Normal(_))) {
        return None;
    }
    let real = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
    let is_in_folder = || ctx.folders.paths.iter().any(|it| real.starts_with(it));
    match real.strip_prefix(root) {
        Ok(inside) => Some(inside.display().to_string()),
        Err(_) => is_in_folder().then(|| real.display().to_string()),
    }
}

/// Judges a command line as the gate would with these rules, and runs nothing.
pub fn explain(mode: Mode, command: &str, rules: &[Rule], ctx: &Context) -> Explained {
    let touch = Touch::Command(command.to_owned());
    let added = added_folders(&touch, rules, ctx);
    let others = others(&added, rules, ctx);
    let readable = Readable { others: &others, ..ctx.readable() };
    let explained = permissions::explain(mode, command, rules, readable);
    let has_network = rules.contains(&Rule::Allow(Scope::Network))
        || (explained.rule.is_some() && permissions::rules_give_network(&touch, rules, readable));
    let may_have = readable.is_confined && explained.verdict != "refused" && !rules.contains(&NO_NETWORK);
    if has_network || !may_have || !permissions::needs_network(&touch, readable) {
        return explained;
    }
    let reason = format!("{}, with the network", explained.reason);
    Explained { verdict: "asks", rule: None, reason, ..explained }
}

/// The rule that keeps the network from every program of the sandbox.
const NO_NETWORK: Rule = Rule::Deny(Scope::Network);

/// Asks the user whether a call whose program the sandbox has blocked may run again with more. `None` where it may not.
///
/// # Errors
/// [`Gone`] when the Session no longer waits for the call.
pub(super) async fn widen(
    call: &Call,
    preview: &Preview,
    blocked: &Blocked,
    authority: &dyn Authority,
) -> Result<Option<Policy>, Gone> {
    let (policy, rule) = match blocked {
        Blocked::Network => (Policy::Network, Some(Rule::Allow(Scope::Network))),
        Blocked::File(_) | Blocked::Hidden(_) => (Policy::Outside, None),
    };
    // Outside of the sandbox there is a network too.
    if authority.permissions().await?.rules.contains(&NO_NETWORK) {
        return Ok(None);
    }
    let more = if policy == Policy::Network { "with the network" } else { "without the sandbox" };
    let reason = format!("{}; to run it again {more}", blocked.told());
    let (decisions, refusal) = ask(call, preview, vec![(reason, rule)], authority).await?;
    // Where no user can be asked, the call has run and failed; that is not a refusal of the call.
    for decision in decisions.into_iter().filter(|it| it.by != DecidedBy::NoAsker) {
        authority.record(decision).await?;
    }
    Ok(if refusal.is_none() { Some(policy) } else { None })
}

/// Asks the user whether what a command, or another writer, wrote to protected files, as this preview shows it, is kept. The
/// question names each group of them.
///
/// # Errors
/// [`Gone`] when the Session no longer waits for the call.
pub(super) async fn keep(
    call: &Call,
    preview: &Preview,
    ctx: &Context,
    writer: &str,
    authority: &dyn Authority,
) -> Result<bool, Gone> {
    let them = if preview.paths.len() == 1 { "it" } else { "them" };
    let mut groups: BTreeMap<Group, Vec<&str>> = BTreeMap::new();
    for path in &preview.paths {
        groups.entry(ctx.workspace.group_of(path)).or_default().push(path);
    }
    let wrote: Vec<String> = groups.iter().map(|(group, paths)| group.wrote(paths)).collect();
    let reason = format!("{writer} wrote {}; to keep {them}", wrote.join("; and "));
    let (decisions, refusal) = ask(call, preview, vec![(reason, None)], authority).await?;
    // Where no user can be asked, the files stay as they were; that is not a refusal of the call.
    for decision in decisions.into_iter().filter(|it| it.by != DecidedBy::NoAsker) {
        authority.record(decision).await?;
    }
    Ok(refusal.is_none())
}

async fn ask(
    call: &Call,
    preview: &Preview,
    parts: Vec<(String, Option<Rule>)>,
    authority: &dyn Authority,
) -> Result<(Vec<PermissionDecision>, Option<Error>), Gone> {
    let mut reasons: Vec<&str> = parts.iter().map(|(reason, _)| reason.as_str()).collect();
    reasons.dedup();
    let reason = reasons.join("; ");
    // "Always" is offered only where one rule covers all parts.
    let rule = parts[0].1.clone().filter(|rule| parts.iter().all(|(_, it)| it.as_ref() == Some(rule)));
    let confirm = confirmation(preview);
    let approval = Approval {
        call_id: call.id.clone(),
        tool: call.tool.clone(),
        preview: Box::new(preview.clone()),
        reason: reason.clone(),
        rule: rule.clone(),
        confirm_rule: rule.as_ref().and_then(|rule| confirmation_of_rule(rule, confirm.as_ref())),
        confirm,
        agent: None,
    };
    let each = |verdict: Verdict, by: DecidedBy, rule: Option<Rule>| -> Vec<PermissionDecision> {
        parts.iter().map(|(reason, _)| decision(call, verdict, by, reason.clone(), rule.clone())).collect()
    };
    Ok(match authority.approve(approval).await? {
        Some(Decision::Allow) => (each(Verdict::Allow, DecidedBy::User, None), None),
        Some(Decision::AllowAlways { rule: chosen, holds, seconds }) => {
            // What may be allowed only once, such as a protected path, gets no rule, whatever the Presenter sends.
            let kept = rule.map(|offered| chosen.unwrap_or(offered)).filter(|rule| matches!(rule, Rule::Allow(_)));
            if let Some(rule) = &kept {
                authority.keep(rule, holds, seconds).await?;
            }
            (each(Verdict::Allow, DecidedBy::User, kept), None)
        }
        Some(Decision::Deny { feedback }) => refused(each(Verdict::Deny, DecidedBy::User, None), feedback),
        Some(Decision::DenyAlways { rule: chosen, holds, seconds, feedback }) => {
            let offered = rule.map(|(Rule::Allow(scope) | Rule::Deny(scope))| Rule::Deny(scope));
            let kept = offered.map(|offered| chosen.unwrap_or(offered)).filter(|rule| matches!(rule, Rule::Deny(_)));
            if let Some(rule) = &kept {
                authority.keep(rule, holds, seconds).await?;
            }
            // A deny that the Log records binds its Session for ever. The saved rule may end or be revoked.
            refused(each(Verdict::Deny, DecidedBy::User, None), feedback)
        }
        None => {
            let way = match authority.permissions().await?.mode {
                // It asks there too.
                Mode::Auto if rule.is_some() => "have the user make a rule for it".into(),
                Mode::Auto => "have the user do it".into(),
                Mode::Ask | Mode::ReadOnly => Remedy::SetMode { mode: Mode::Auto },
            };
            let error = Error::new(
                Code::InputRequired,
                format!("this needs the user's approval ({reason}), and no user can be asked here"),
                Remedy::any_of(["try another way".into(), way]),
            );
            (each(Verdict::Deny, DecidedBy::NoAsker, rule), Some(error))
        }
    })
}

/// The word before a call whose damage lasts, or of which the preview leaves something out.
fn confirmation(preview: &Preview) -> Option<Confirmation> {
    // Only commands are known to destroy for good: what tools write is stored first.
    let dangers = if preview.would.starts_with("run") { grave(&preview.target) } else { Vec::new() };
    let unseen = unseen_in(preview);
    let is_needed = !dangers.is_empty() || !unseen.is_empty();
    is_needed.then(|| Confirmation { word: Confirmation::ONCE.to_owned(), dangers, unseen })
}

/// What a preview leaves out of its changes, as clauses.
fn unseen_in(preview: &Preview) -> Vec<String> {
    let own = preview.unseen.iter().map(|it| format!("{it} of {} are not shown", preview.target));
    own.chain(preview.steps.iter().flat_map(unseen_in)).collect()
}

/// The word before a rule that allows what people regret, or that covers a call whose damage lasts.
fn confirmation_of_rule(rule: &Rule, of_call: Option<&Confirmation>) -> Option<Confirmation> {
    let Rule::Allow(scope) = rule else { return None };
    let (of_call, unseen) = of_call.map(|it| (it.dangers.clone(), it.unseen.clone())).unwrap_or_default();
    let dangers = danger_of(scope).map_or(of_call, |it| vec![it]);
    let is_needed = !dangers.is_empty() || !unseen.is_empty();
    is_needed.then(|| Confirmation { word: Confirmation::ALWAYS.to_owned(), dangers, unseen })
}

/// Checks that a decision to allow has the word that its approval asks for.
///
/// # Errors
/// `CONFIRMATION_NEEDED`, with the word and what it confirms.
pub fn check_word(approval: &Approval, decision: &Decision, typed: Option<&str>) -> Result<(), Error> {
    let needed = match decision {
        Decision::Deny { .. } | Decision::DenyAlways { .. } => None,
        Decision::Allow => approval.confirm.clone(),
        Decision::AllowAlways { rule, .. } => match (rule, &approval.rule) {
            // Where no rule is offered, none is saved.
            (_, None) => approval.confirm.clone(),
            (Some(chosen), Some(_)) => confirmation_of_rule(chosen, approval.confirm.as_ref()),
            (None, Some(_)) => approval.confirm_rule.clone(),
        },
    };
    match needed {
        Some(it) if typed != Some(it.word.as_str()) => {
            let (why, what, word) = (it.headline().to_lowercase(), it.clauses(), it.word);
            let message = format!("{why} ({what}), so the decision needs the word `{word}`");
            let fix =
                format!("ask the user to type `{word}`, and send it as `word` of the decision; or refuse the call");
            Err(Error::new(Code::ConfirmationNeeded, message, fix).with("word", word))
        }
        Some(_) | None => Ok(()),
    }
}

/// The user's refusal, with what the user said about it.
fn refused(
    mut decisions: Vec<PermissionDecision>,
    feedback: Option<String>,
) -> (Vec<PermissionDecision>, Option<Error>) {
    let comment = feedback.as_ref().map_or(String::new(), |text| format!(" and said: {text}"));
    let error = Error::new(
        Code::PermissionDenied,
        format!("the user refused this call{comment}"),
        "respect that: try another way, or ask the user",
    );
    decisions[0].feedback = feedback;
    (decisions, Some(error))
}

fn decision(call: &Call, verdict: Verdict, by: DecidedBy, reason: String, rule: Option<Rule>) -> PermissionDecision {
    PermissionDecision { call_id: call.id.clone(), verdict, by, reason, rule, feedback: None }
}
