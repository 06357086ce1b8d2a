use std::io::Read as _;

use proptest::prelude::*;

use super::*;

/// Texts in an encoding each: the name, and words that are written in it.
const SAMPLES: [(&str, &str); 20] = [
    ("UTF-8 with BOM", "größer 漢字"),
    ("UTF-16LE", "plain words, 一 and 😀"),
    ("UTF-16LE with BOM", "größer 漢字 🎉"),
    ("UTF-16BE", "Привет, мир. Как дела?"),
    ("UTF-16BE with BOM", "日本語"),
    ("Latin-1 (ISO-8859-1)", "Die Größe der Tür: café, señor"),
    ("windows-1252", "“quoted” – 5 € for a café"),
    ("windows-1251", "Ошибка: файл не найден"),
    ("windows-1250", "Příliš žluťoučký kůň"),
    ("windows-1253", "Καλημέρα κόσμε"),
    ("KOI8-R", "Привет, мир"),
    ("KOI8-U", "Привіт, світе. Як твої справи?"),
    ("Shift_JIS", "設定ファイルを読み込めません"),
    ("EUC-JP", "設定ファイルを読み込めません"),
    ("GBK", "配置文件，名称：张三"),
    ("gb18030", "你好，世界😀。配置文件"),
    ("Big5", "設定檔，名稱：張三，資料庫連線失敗"),
    ("EUC-KR", "안녕하세요. 설정 파일을 읽을 수 없습니다"),
    ("ISO-8859-2", "Zażółć gęślą jaźń"),
    ("windows-1254", "Türkçe şğı İstanbul"),
];

/// A stream whose bytes arrive in pieces of this length: its text, and the encoding that was found.
fn piecewise(source: Source, bytes: &[u8], step: usize) -> (String, Option<Encoding>) {
    let mut transcoder = Transcoder::new(source);
    let mut text: Vec<u8> = bytes.chunks(step).flat_map(|piece| transcoder.push(piece).into_owned()).collect();
    text.extend(transcoder.end());
    (String::from_utf8(text).expect("UTF-8"), transcoder.encoding())
}

/// Broken build: one that takes the legacy encodings for binary, or UTF-16 without a mark for NULs.
#[test]
fn each_encoding_is_recognised_decoded_and_written_back() {
    for (name, words) in SAMPLES {
        let encoding = Encoding::named(name).unwrap_or_else(|| panic!("{name} is a name"));
        assert_eq!(encoding.to_string(), name);
        let text = format!("# {words}\r\nname = 5\n\n{words}\n");
        let bytes = encoding.encode(&text).expect("it has the characters");
        assert_eq!(Encoding::of(&bytes), encoding, "{name}");
        assert_eq!(encoding.decode(&bytes), (Cow::Borrowed(text.as_str()), true), "{name}");
        // In an output, the byte order mark of UTF-8 stays in the text.
        for source in [Source::File, Source::Output].into_iter().take(if encoding.is_utf8() { 1 } else { 2 }) {
            for step in [bytes.len(), 1000] {
                assert_eq!(piecewise(source, &bytes, step), (text.clone(), Some(encoding)), "{name}");
            }
        }
        assert_eq!([2, 7].map(|step| piecewise(Source::File, &bytes, step).0), [text.clone(), text], "{name}");
    }
}

/// Broken build: the first lines of an output decide about all that other programs write behind them.
#[test]
fn lines_of_an_output_that_are_utf8_stay_beside_others() {
    let old = b"Andr\xe9 a modifi\xe9 le fichier d\xe9j\xe0 cr\xe9\xe9\n".repeat(200);
    let bytes = [old.as_slice(), "größe ✓ 日本\n".as_bytes(), b"caf\xe9", "\n✓ ".as_bytes(), "ü".as_bytes()].concat();
    let text = "André a modifié le fichier déjà créé\n".repeat(200) + "größe ✓ 日本\ncafé\n✓ ü";
    for step in [1, 7, 4_000, bytes.len()] {
        let (read, encoding) = piecewise(Source::Output, &bytes, step);
        assert!(read == text && encoding.is_some(), "in pieces of {step}: {}", &read[read.len() - 40..]);
    }
    // A line without an end is not waited for for ever.
    let words = "中文的一行没有结尾".repeat(2_000);
    let (bytes, _, _) = encoding_rs::GBK.encode(&words);
    assert!(piecewise(Source::Output, &bytes, 1_000).0 == words, "it is read to its end");
}

/// Another version of a file is read as this one is, or not at all.
///
/// Broken build: an undo takes a change of the encoding, or a guess about a short version, for a change of the words.
#[test]
fn a_version_in_another_encoding_is_not_compared() {
    let now = |bytes: &[u8]| Decoded::of(bytes.to_vec()).expect("text");
    let words = |now: &Decoded, bytes: &[u8]| now.version(bytes.to_vec()).map(|it| it.text().to_owned());
    let utf8 = now("déjà vu\n".as_bytes());
    assert_eq!(words(&utf8, b"d\xe9j\xe0 vu\n"), None);
    assert_eq!(words(&utf8, b"plain\n").as_deref(), Some("plain\n"));
    let latin = now(b"d\xe9j\xe0 vu, cr\xe9\xe9, modifi\xe9\n");
    assert_eq!(words(&latin, "déjà vu\n".as_bytes()), None);
    assert_eq!(words(&latin, b"plain\n").as_deref(), Some("plain\n"));
    assert_eq!(words(&latin, b"caf\xe9\n").as_deref(), Some("café\n"));
}

/// Broken build: a byte that ends two characters is gone over twice, and the second time backwards.
#[test]
fn an_edit_behind_a_torn_character_is_made_or_refused() {
    let start = "这是一个很长的文件\n".repeat(8_000);
    let (start, _, _) = encoding_rs::GBK.encode(&start);
    for lead in [0x81_u8, 0xb0, 0xfe] {
        let bytes = [&start[..], b"abc", &[lead], b"\n", b"end\n"].concat();
        let file = Decoded::of(bytes).expect("text");
        for new in ["abc\u{fffd} x\nend\n", "abd\u{fffd}\nend\n", "abc x\nend\n", "\nend\n"] {
            let at = file.text().rfind("abc").expect("the line");
            let parts = [Part::Kept(0..at), Part::New(new.to_owned())];
            if let Ok(changed) = file.changed(&parts) {
                assert!(changed.text().ends_with(new), "{lead:#x} {new:?}");
            }
        }
    }
}

/// Broken build: one that decides from the first bytes, or from other bytes of a file than of a slice.
#[test]
fn an_encoding_is_recognised_far_into_a_file() {
    for (name, words) in SAMPLES {
        let encoding = Encoding::named(name).expect("a name");
        for before in [70_000, 200_000] {
            let text = format!("{}{}", "plain line\n".repeat(before / 11), format!("{words}\n").repeat(4_000));
            let bytes = encoding.encode(&text).expect("it has the characters");
            assert_eq!(Encoding::of(&bytes), encoding, "{name}");
            let mut reader = Utf8Reader::new(Source::File, bytes.as_slice());
            let mut read = String::new();
            reader.read_to_string(&mut read).expect("memory");
            assert_eq!((reader.encoding(), read == text), (Some(encoding), true), "{name}");
        }
    }
}

#[test]
fn what_is_valid_utf_8_is_utf_8_and_a_few_faults_do_not_change_that() {
    for text in ["", "plain\n", "größer\n", "漢字", "\u{1b}[1mbold\u{7}", "Ã¤Ã¶"] {
        assert_eq!(Encoding::of(text.as_bytes()), Encoding::UTF_8, "{text:?}");
    }
    for bytes in [
        b"gr\xc3\xb6\xc3\x9fer caf\xe9 is\n".as_slice(),
        "漢字かな交じり文\u{e9}".as_bytes().split_last().expect("bytes").1,
    ] {
        assert_eq!(Encoding::of(bytes), Encoding::UTF_8, "{bytes:?}");
    }
}

/// Broken build: one that finds letters in a program, an archive, a key or names that are divided by NULs.
#[test]
fn bytes_that_are_no_text_stay_binary() {
    let noise: Vec<u8> =
        (0..4_u64).flat_map(|n| *blake3_like(n).as_slice().first_chunk::<32>().expect("32 bytes")).collect();
    let binaries: [&[u8]; 15] = [
        b"PNG\0\x01\x02",
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0\x01\0\0\0",
        b"PK\x03\x04\x14\0\0\0\x08\0\xd3\x8d\x54\x5a\xaa\xbb\xcc\xdd",
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9W(\xcf/\xcaI",
        b"\0asm\x01\0\0\0\x01\x07\x01\x60\x02\x7f\x7f\x01",
        b"\xca\xfe\xba\xbe\0\0\0\x34\0\x1d\x0a\0\x06\0\x0f",
        b"abc\0",
        b"/bin/cat\0file\0",
        b"src/main.rs\0src/lib.rs\0",
        b"\xff\xfe\0\0h\0\0\0i\0\0\0",
        b"\x01\0\x02\0\x03\0\x04\0",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20",
        b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01",
        &noise,
    ];
    for bytes in binaries {
        assert_eq!(Encoding::of(bytes), Encoding::UTF_8, "{bytes:?}");
        assert!(decoded(bytes).is_none(), "{bytes:?}");
    }
}

/// Bytes without a pattern, the same in each run.
fn blake3_like(seed: u64) -> [u8; 40] {
    let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    std::array::from_fn(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
}

/// Broken build: one that asks statistics alone, for which `設定` is Polish, `终` Korean, and `你好` too.
#[test]
fn a_few_words_are_in_the_encoding_in_which_they_make_sense() {
    for (names, words) in [
        (
            "latin-1",
            "größer café Übersetzung naïve señor Tür é Straße Ärger São niño ¡Hola! ¿Qué? München 50\u{a0}°C ±3 §5 æble",
        ),
        ("windows-1252", "“quoted” 5\u{a0}€ it’s „so“"),
        ("windows-1251", "да Ошибка Привет имя Москва Настройки"),
        ("koi8-r", "да нет файл Привет имя Москва Настройки"),
        ("shift_jis", "設定 日本語 表示 ファイル エラー はい 東京 名前 終了 読み込み中 日 能力 予約 申請 十分 表"),
        ("euc-jp", "設定 日本語 表示 ファイル エラー 東京 名前 終了 能力 予約 申請"),
        ("gbk", "设置 中文 你好 错误 文件 测试 名称 完成 是 中 数据库连接失败 密码"),
        ("big5", "設定 中文 你好 錯誤 檔案 測試 名稱 完成 是 中 密碼 許功蓋"),
        ("euc-kr", "설정 한국어 오류 파일 이름 완료 안녕하세요 예 서울"),
        ("windows-1250", "Zażółć gęślą Příliš Łódź Dvořák český"),
    ] {
        let encoding = Encoding::named(names).expect("a name");
        for word in words.split(' ') {
            for text in [format!("{word}\n"), format!("# settings\nname = {word}\nport = 80\n")] {
                let bytes = encoding.encode(&text).expect("it has the characters");
                let found = Encoding::of(&bytes);
                assert_eq!(found.decode(&bytes).0, text, "{names}, found as {found}");
            }
        }
    }
}

#[test]
fn a_file_that_names_its_encoding_has_it() {
    for (start, name, words) in [
        ("# -*- coding: cp1251 -*-\n# ", "windows-1251", "да"),
        ("<?xml version=\"1.0\" encoding=\"Shift_JIS\"?>\n<a>", "Shift_JIS", "表示"),
        ("<meta charset=euc-kr>\n", "EUC-KR", "서울"),
        ("@charset \"big5\";\n/* ", "Big5", "測試"),
        ("# vim: set fileencoding=gbk :\n", "GBK", "你好"),
    ] {
        let encoding = Encoding::named(name).expect("a name");
        let bytes = encoding.encode(&format!("{start}{words}\n")).expect("it has the characters");
        assert_eq!(Encoding::of(&bytes), encoding, "{start}");
    }
}

/// Broken build: one that writes `?`, an entity, or a similar character.
#[test]
fn a_character_that_does_not_fit_is_refused() {
    for (name, character) in [
        ("latin-1", '€'),
        ("cp1252", '漢'),
        ("windows-1251", 'ö'),
        ("sjis", '¥'),
        ("shift_jis", '😀'),
        ("euc-jp", '−'),
        ("gb2312", '😀'),
        ("big5", '😀'),
        ("euc-kr", 'é'),
    ] {
        let encoding = Encoding::named(name).expect("a name");
        let unfit = Unfit::Character { character, encoding };
        assert_eq!(encoding.encode(&format!("a{character}b")), Err(unfit), "{name}");
    }
    for name in ["", "ascii", "iso-2022-jp", "x-user-defined", "replacement", "latin-1 with BOM", "klingon"] {
        assert_eq!(Encoding::named(name), None, "{name}");
    }
}

/// Broken build: one that encodes the whole file anew, where an encoding has two sequences for a character.
#[test]
fn a_change_keeps_the_other_bytes_as_they_are() {
    // Shift_JIS has ∵ as 81 E6 and as FA 5B.
    let bytes = b"\x90\xdd\x92\xe8\x83t\x83@\x83C\x83\x8b \xfa\x5b\r\n\x90\xdd\x92\xe8 = 1\n\xfa\x5b\x81\xe6".to_vec();
    let sjis = Encoding::named("sjis").expect("a name");
    let before = Decoded::with(sjis, bytes.clone()).expect("text");
    assert_eq!(
        (before.encoding().to_string().as_str(), before.text()),
        ("Shift_JIS", "設定ファイル ∵\r\n設定 = 1\n∵∵")
    );
    let after = before.rewritten(&before.text().replace("= 1", "= 値 2")).expect("it fits");
    let mut expected = bytes;
    let at = expected.windows(3).position(|it| it == b"= 1").expect("there");
    expected.splice(at..at + 3, *b"= \x92l 2");
    assert_eq!(after.into_bytes(), expected);
    // A line that is replaced beside one of the same text leaves the other's bytes alone.
    let twins = Decoded::with(sjis, b"\xfa\x5b\n\x81\xe6\n\xfa\x5b\n".to_vec()).expect("text");
    assert_eq!(twins.rewritten("b\n\u{2235}\n\u{2235}\n").expect("it fits").into_bytes(), b"b\n\x81\xe6\n\xfa\x5b\n");
    assert_eq!(twins.rewritten("\u{2235}\n\u{2235}\nb\n").expect("it fits").into_bytes(), b"\xfa\x5b\n\x81\xe6\nb\n");
    // Faulty bytes stay too, also right beside the change.
    let before = Decoded::of(b"gr\xc3\xb6\xc3\x9fer caf\xe9 is open\n".to_vec()).expect("text");
    let after = before.rewritten(&before.text().replace(" is open", ", closed")).expect("it fits");
    assert_eq!(after.into_bytes(), b"gr\xc3\xb6\xc3\x9fer caf\xe9, closed\n");
    assert_eq!(before.changed(&[Part::New("a\u{fffd}".into())]).err(), Some(Unfit::Replacement));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    /// Broken build: one whose places in the text and in the bytes differ by one character anywhere.
    #[test]
    fn bytes_outside_of_a_change_never_change(
        which in 0..SAMPLES.len(),
        picks in proptest::collection::vec(0..64_usize, 0..60),
        from in 0.0..1.0_f64, len in 0.0..0.5_f64,
        put in proptest::collection::vec(0..64_usize, 0..12),
    ) {
        let (name, words) = SAMPLES[which];
        let encoding = Encoding::named(name).expect("a name");
        let alphabet: Vec<char> = words.chars().chain(['\n', '\r', '\n', ' ', 'a']).collect();
        let text = |picks: &[usize]| -> String { picks.iter().map(|pick| alphabet[pick % alphabet.len()]).collect() };
        let (text, new) = (text(&picks), text(&put));
        let chars: Vec<char> = text.chars().collect();
        let first = (from * chars.len() as f64) as usize;
        let last = (first + (len * chars.len() as f64) as usize).min(chars.len());
        let part = |chars: &[char]| chars.iter().collect::<String>();
        let (head, tail) = (part(&chars[..first]), part(&chars[last..]));
        let bytes = encoding.encode(&text).expect("it has the characters");
        let before = Decoded::with(encoding, bytes).expect("text");
        // In UTF-8 the mark is a part of the text.
        let bom = if encoding.is_utf8() { encoding.bom().len() } else { 0 };
        let at = bom + head.len()..bom + text.len() - tail.len();
        let after = before.changed(&[
            Part::Kept(0..at.start), Part::New(new.clone()), Part::Kept(at.end..before.text().len()),
        ]).expect("it fits");
        let expected = [
            encoding.encode(&head).expect("it fits"),
            encoding.encode_part(&new).expect("it fits"),
            encoding.encode_part(&tail).expect("it fits"),
        ].concat();
        prop_assert_eq!(after.into_bytes(), expected);
    }

    /// Random bytes: whatever is decoded, a change leaves the bytes before and behind it alone, or is refused.
    #[test]
    fn no_byte_of_a_line_that_is_not_named_changes(
        which in 0..SAMPLES.len(),
        lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 3..6),
    ) {
        let encoding = Encoding::named(SAMPLES[which].0).expect("a name");
        let newline = encoding.encode_part("\n").expect("all have it");
        let lines: Vec<Vec<u8>> = lines.into_iter().map(|line| {
            let mut line: Vec<u8> = line.into_iter().filter(|byte| *byte != b'\n').collect();
            line.truncate(line.len() & !1);
            line
        }).collect();
        let bytes = [encoding.bom(), &lines.join(newline.as_slice())].concat();
        let Some(before) = Decoded::with(encoding, bytes) else { return Ok(()) };
        let Some(from) = before.text().find('\n') else { return Ok(()) };
        let Some(end) = before.text()[from + 1..].find('\n') else { return Ok(()) };
        let parts = [Part::Kept(0..from + 1), Part::New("new".into()), Part::Kept(from + 1 + end..before.text().len())];
        if let Ok(after) = before.changed(&parts) {
            let new = encoding.encode_part("new").expect("all have it");
            let rest = lines[2..].join(newline.as_slice());
            let expected = [encoding.bom(), &lines[0], &newline, &new, &newline, &rest].concat();
            prop_assert_eq!(after.into_bytes(), expected);
        }
    }
}
