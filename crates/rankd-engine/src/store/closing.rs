//! The closing line of a data file: how many lines stand before it, and the SHA-256 of their bytes.
//!
//! With it, a file that was cut, damaged or edited is refused. Without it, a changed byte would change answers without
//! being noticed.

use crate::store::memory::BadLine;
use rankd_plan::json::{Number, Reader, Writer};
use sha2::{Digest, Sha256};

/// The line that closes a file with this text.
pub fn line(text: &str) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("lines").int(text.lines().count() as i64).field("sha256").string(&sha256(text));
    });
    writer.finish() + "\n"
}

/// The lines before the closing line, which has been checked; nothing where the text has none.
pub(super) fn check(text: &str) -> Result<Option<&str>, BadLine> {
    let end = text.trim_end().len();
    let start = text[..end].rfind('\n').map_or(0, |at| at + 1);
    let (body, last) = (&text[..start], &text[start..end]);
    let Some((lines, digest)) = read(last) else { return Ok(None) };
    let found = body.lines().count();
    let message = match () {
        () if lines != found as i64 => {
            format!("this closing line counts {lines} lines before it, but the file has {found}")
        }
        () if digest != sha256(body) => {
            "the lines before this one are not those that the file was closed with".to_owned()
        }
        () => return Ok(Some(body)),
    };
    let help = "fetch the file again; or, if it was changed on purpose, remove this line";
    Err(BadLine { line: found + 1, message: format!("{message}: {help}") })
}

/// What a closing line says; nothing where it is another line.
fn read(line: &str) -> Option<(i64, String)> {
    let mut reader = Reader::new(line, 1);
    let (mut lines, mut digest) = (None, None);
    let mut fields = reader.open_object().ok()?;
    while let Some((name, repeated)) = reader.field(&mut fields).ok()? {
        match &*name {
            "lines" if !repeated => match reader.number().ok()? {
                Number::Int(count) => lines = Some(count),
                Number::Float(_) | Number::OutOfRange => return None,
            },
            "sha256" if !repeated => digest = Some(reader.string().ok()?.into_owned()),
            _ => return None,
        }
    }
    reader.end().ok()?;
    Some((lines?, digest?))
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::Data;

    fn closed() -> String {
        let user = |id: u32| {
            let (age, follows) = (20 + id, id * 3);
            format!(
                "{{\"key\":\"user:{id}\",\"hash\":{{\"name\":\"Ada {id}\",\"age\":{age}}}}}\n{{\"key\":\"follow:{id}\",\"list\":[{follows},7]}}\n"
            )
        };
        let text: String = (1..=20).map(user).collect();
        let line = line(&text);
        text + &line
    }

    #[test]
    fn no_flipped_bit_changes_an_answer_in_silence() {
        let good = closed();
        let data = Data::parse(&good).unwrap();
        assert!(data.is_closed());
        let (mut state, mut refused) = (20_260_101_u64, 0);
        for _ in 0..1000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bit = (state >> 20) as usize % (good.len() * 8);
            let mut bytes = good.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // What is no text is refused where files are read.
            match String::from_utf8(bytes).map(|text| Data::parse(&text)) {
                Err(_) | Ok(Err(_)) => refused += 1,
                Ok(Ok(other)) => assert!(other == data, "bit {bit} of byte {}", bit / 8),
            }
        }
        assert!(refused > 990, "{refused}");
    }

    #[test]
    fn a_cut_file_and_joined_files_are_refused_and_one_without_the_line_is_read() {
        let good = closed();
        let cut = good.split_once('\n').unwrap().1;
        let bad = Data::parse(cut).unwrap_err();
        assert_eq!(bad.line, 40);
        assert!(
            bad.message.starts_with("this closing line counts 40 lines before it, but the file has 39"),
            "{}",
            bad.message
        );
        let joined = Data::parse(&(good.clone() + &good)).unwrap_err();
        assert!(joined.message.contains("the file has 81"), "{}", joined.message);
        let continued = Data::parse(&(good.clone() + "{\"key\":\"user:9\",\"list\":[]}\n")).unwrap_err();
        assert_eq!((continued.line, continued.message.contains("closing line")), (41, true), "{}", continued.message);
        let (open, _) = good.trim_end().rsplit_once('\n').unwrap();
        let data = Data::parse(open).unwrap();
        assert!(!data.is_closed() && data.len() == 40);
        assert!(Data::parse("").is_ok());
    }
}
