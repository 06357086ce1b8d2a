//! The encoding of a few words: what statistics of a language cannot tell from so little, common characters, the case of letters and
//! the borders of words can.

use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GBK, IBM866, ISO_8859_2, ISO_8859_5, KOI8_U, SHIFT_JIS, WINDOWS_1250, WINDOWS_1251,
    WINDOWS_1252, WINDOWS_1253, WINDOWS_1254, WINDOWS_1255, WINDOWS_1256, WINDOWS_1257,
};

use super::detect::strictly;

/// Samples with more bytes that are not ASCII are long enough for the statistics.
const MOST: usize = 32;

/// What the words may be written in, the more common first, and how much less likely than the first each is.
const CANDIDATES: [(&Encoding, i32); 17] = [
    (WINDOWS_1252, 0),
    (WINDOWS_1251, 1),
    (SHIFT_JIS, 1),
    (GBK, 1),
    (BIG5, 2),
    (EUC_KR, 2),
    (EUC_JP, 2),
    (KOI8_U, 3),
    (WINDOWS_1250, 6),
    (ISO_8859_2, 8),
    (WINDOWS_1254, 8),
    (WINDOWS_1257, 8),
    (IBM866, 8),
    (WINDOWS_1253, 8),
    (WINDOWS_1255, 8),
    (WINDOWS_1256, 8),
    (ISO_8859_5, 9),
];
/// How much a guess by statistics counts.
const GUESSED: i32 = 10;

const SIMPLIFIED: &str = "的一是不了在人有我他这中大来上个国到说们为子和你地出会也时要就可以对生能而那得于着下自之年过后作里用道行所然家种事成方多经去法学如都同现当没动面起看定天分还进好小部其些主样理心本前开但因只从想日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运笔配置错误测试称库连失败户密码读请修改开";
const TRADITIONAL: &str = "的一是不了在人有我他這中大來上個國到說們為子和你地出會也時要就可以對生能而那得於著下自之年過後作裡用道行所然家種事成方多經去法學如都同現當沒動面起看定天分還進好小部其些主樣理心本前開但因只從想日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直資命山金指許統區保至隊形社便空決治展馬科司五基眼書非則聽白卻界達光放強即像難且權思王象完設式色路記南品住告類求據程北邊死張該交規萬取拉格望覺術領共確傳師觀清今切院讓識候帶導爭運筆配置錯誤檔案測試稱料庫連線失敗密碼讀請修改功訊息台";
const JAPANESE: &str = "日一国会人年大十二本中長出三同時政事自行社見月分議後前民生連五発間対上部東者党地合市業内相方四定今回新場金員九入選立開手米力学問高代明実円関決子動京全目表戦経通外最言氏現理調体化田当八六約主題下首意法不来作性的要用制治度務強気小七成期公野協取都和統以機平総加山思家話世受区領多県続進正安設保改数記院女初北午指権心界支第産結百派点教報済書府活原先共得解名交資予川向際査勝面委告軍文反元重近千考判認画海参売利組知案道信策集在件団別物側任引使求所次水半品昨論計死官増係感特情投示変打男基私各始島直両朝革価式確村提運終挙果西勢減台広容必応演電歳住争談能無再位置企真流格有疑口過局少放税検藤町常校料沢裁状工建語球営空職証土与急止送援供可役構木割聞身費付施切由説転食比難防補車優夫研収断井何南石足違消境神番規術護展態導鮮備宅害配副算視条幹独警宮究育席輸訪楽起万着乗店述残想線率病農州武声質念待試族象銀域助労例衛然早張映限親額監環験追審商葉義伝働形景落欧担好退準賞訴辺造英被株頭技低毎医復仕去姿味負閣韓渡失移差衆個門写評課末守若脳極種美岡影命含福蔵量望松非撃佐核観察整段横融型白深字答夜製票況音申様財港識注呼渉達読込了削除更存索請敗誤漢";
const KOREAN: &str = "이다는을의에가를한하고지로은기인사어서도리자나시대해아스그수일부정전라상제보장오주니여원조구게만들있것과으동공안국소비면신관마성용유경세선실무모화방위당학생간발계재중물분식진민현차산행교개회음람름년월건영양남치내역외미터말단체결문반추입출력설저파명류테트료완녕요읽없습예업데합취확울글본";
const LATIN: &str = "äöüßÄÖÜéèêëàâçñáíóúïîìôòùûãõåæøÉÅØœŒąćęłńśźżŁŚŻěščřžýůďťňČŠŽőűğışąčęėįšųūžāēģīķļņİĞŞ";
const RUSSIAN_WORDS: &str = "яивсуоакЯИВСУОАК";

/// The encoding in which a few words make the most sense; `None` if there are too many of them to be judged so.
pub(super) fn best(bytes: &[u8], is_end: bool, guess: &'static Encoding) -> Option<&'static Encoding> {
    if bytes.iter().filter(|byte| !byte.is_ascii()).take(MOST + 1).count() > MOST {
        return None;
    }
    let all = CANDIDATES
        .into_iter()
        .chain([(guess, 10)].into_iter().filter(|it| CANDIDATES.iter().all(|(own, _)| *own != it.0)));
    let scored = all.filter_map(|(table, rareness)| {
        let text = strictly(table, bytes, is_end)?;
        Some((sense(&text, table) - rareness + if table == guess { GUESSED } else { 0 }, table))
    });
    scored.rev().max_by_key(|(sense, _)| *sense).map(|(_, table)| table)
}

/// How much sense a text makes that would be in this encoding: about ten for each byte of a plausible character.
fn sense(text: &str, table: &'static Encoding) -> i32 {
    let chars: Vec<char> = text.chars().collect();
    let parts = chars.chunk_by(|a, b| is_letter(*a) == is_letter(*b));
    let mut before = None;
    let mut parts = parts.peekable();
    // Words of two alphabets with other letters than ASCII in one short text are a mistake.
    let is_accented = |c: &char| matches!(c, '\u{c0}'..='\u{24f}');
    let is_foreign = |c: &char| matches!(c, '\u{370}'..='\u{e4e}');
    let mut sense = if chars.iter().any(is_accented) && chars.iter().any(is_foreign) { -60 } else { 0 };
    while let Some(part) = parts.next() {
        if is_letter(part[0]) {
            sense += of_word(part, table);
        } else {
            let behind = parts.peek().map(|word| word[0]);
            sense += part.iter().map(|c| of_sign(*c, part, before, behind)).sum::<i32>();
        }
        before = part.last().copied();
    }
    sense
}

/// Whether words have this character: letters, and the marks above those of Thai.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '\u{e31}'..='\u{e4e}')
}

/// The sense of a sign, among other signs between these letters. What stands within a word is mostly half of a
/// character.
fn of_sign(c: char, signs: &[char], before: Option<char>, behind: Option<char>) -> i32 {
    let is_ascii = |c: Option<char>| c.is_some_and(|c| c.is_ascii());
    match c {
        _ if c.is_ascii() => 0,
        _ if c.is_control() => -50,
        '\u{a1}' | '\u{bf}' | '\u{2018}'..='\u{201e}' => 8,
        '\u{a0}' => 0,
        '\u{ad}' | '\u{ff61}'..='\u{ff9f}' => -20,
        _ if signs.len() == 1 && before.is_some() && behind.is_some() => -20,
        '\u{3000}'..='\u{303f}' | '\u{ff01}'..='\u{ff60}' => {
            if is_ascii(before) || is_ascii(behind) {
                0
            } else {
                20
            }
        }
        _ if signs.iter().filter(|c| !c.is_ascii() && **c != '\u{a0}').count() > 1 => -5,
        _ if signs.first() == Some(&c) && before.is_some() || signs.last() == Some(&c) && behind.is_some() => 0,
        _ => 8,
    }
}

fn of_word(word: &[char], table: &'static Encoding) -> i32 {
    let others: Vec<char> = word.iter().copied().filter(|c| !c.is_ascii()).collect();
    let Some(first) = others.first() else { return 0 };
    let is_mixed = others.len() < word.len();
    if table.is_single_byte() {
        return match first {
            '\u{80}'..='\u{24f}' => of_latin(word, &others),
            _ if is_mixed => -20,
            '\u{400}'..='\u{45f}' if word.len() == 1 => {
                if RUSSIAN_WORDS.contains(*first) {
                    8
                } else {
                    -5
                }
            }
            _ => of_case(word),
        };
    }
    let of_each = |c: &char| match c {
        '\u{3040}'..='\u{30ff}' if table == SHIFT_JIS || table == EUC_JP => 30,
        '\u{ff61}'..='\u{ff9f}' => -20,
        c if common(table).contains(*c) => 40,
        '\u{3040}'..='\u{ff60}' => -15,
        _ => -20,
    };
    others.iter().map(of_each).sum::<i32>() - if is_mixed { 15 } else { 0 }
}

/// The characters that most texts of an encoding are made of.
fn common(table: &'static Encoding) -> &'static str {
    match table {
        it if it == GBK => SIMPLIFIED,
        it if it == BIG5 => TRADITIONAL,
        it if it == EUC_KR => KOREAN,
        _ => JAPANESE,
    }
}

/// Latin letters with accents stand among plain ones.
fn of_latin(word: &[char], others: &[char]) -> i32 {
    let of_each = |c: &char| if LATIN.contains(*c) { 15 } else { 8 };
    match others.len() {
        1 if word.len() == 1 => 3,
        count if count == word.len() => {
            let of_none = if others.iter().all(|c| LATIN.contains(*c)) { -8 } else { -20 };
            of_none * i32::try_from(count).unwrap_or(0)
        }
        _ if !is_cased(word) && word.iter().any(|c| c.is_lowercase()) => 0,
        count if count * 3 > word.len() * 2 => 6 * i32::try_from(count).unwrap_or(0),
        _ => others.iter().map(of_each).sum(),
    }
}

/// Words of other alphabets have small letters, of which the first may be a capital.
fn of_case(word: &[char]) -> i32 {
    let len = i32::try_from(word.len()).unwrap_or(0);
    match word {
        _ if is_cased(word) => 10 * len,
        _ if word.iter().all(|c| !c.is_lowercase()) => 4 * len,
        _ => -20,
    }
}

fn is_cased(word: &[char]) -> bool {
    word.iter().skip(1).all(|c| !c.is_uppercase())
}
