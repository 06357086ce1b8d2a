//! The index of skills in the prompt: the names and descriptions of those that the model may use.

use super::found::Skill;
use protocol::event::SkillIndex;

/// The most bytes of the index.
const MAX_INDEX: usize = 4 << 10;
/// How much of each description is shown, characters: the first of these with which every skill fits, else the last.
const SHOWN: [usize; 4] = [400, 200, 120, 60];
/// What comes before the list.
const HEAD: &str = "<skills>
Skills are instructions for certain kinds of work. Before you start work that one of these covers, read it with skill_view \
(in run: skill show NAME) and follow it. This list replaces any earlier one.
";
const TAIL: &str = "</skills>";
/// Room for the line that counts what is left out.
const COUNT: usize = 80;

/// The index of these skills, which are sorted by name. The same skills have the same bytes.
pub fn of(skills: &[Skill]) -> SkillIndex {
    let offered: Vec<&Skill> = skills.iter().filter(|skill| skill.is_for_model()).collect();
    let lines = |most: usize| offered.iter().map(|skill| line(skill, most)).collect::<Vec<String>>();
    let room = MAX_INDEX - HEAD.len() - TAIL.len() - COUNT;
    let size = |lines: &[String]| lines.iter().map(String::len).sum::<usize>();
    let fitting = SHOWN.iter().map(|most| lines(*most)).find(|lines| size(lines) <= room);
    let lines = fitting.unwrap_or_else(|| lines(SHOWN[SHOWN.len() - 1]));
    let mut used = 0;
    let listed = lines.iter().take_while(|line| {
        used += line.len();
        used <= room
    });
    let listed = listed.count();
    let left_out = lines.len() - listed;
    let mut text = format!("{HEAD}{}", lines[..listed].concat());
    if offered.is_empty() {
        text.push_str("No skill can be used now.\n");
    }
    if left_out > 0 {
        text.push_str(&format!("{left_out} more did not fit here: skills_list (in run: skill list) names them all.\n"));
    }
    text.push_str(TAIL);
    SkillIndex { text, listed: listed as u64, left_out: left_out as u64 }
}

/// One skill. Nothing in it can end the list.
fn line(skill: &Skill, most: usize) -> String {
    let shown = |text: &str, most: usize| super::text::one_line(text, most).replace('<', "&lt;");
    format!("- {}: {}\n", shown(&skill.name, 64), shown(&skill.description, most))
}
