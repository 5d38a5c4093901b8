//! The versions of one plan that the process has had in its folder: the last ten good ones, which of them is pinned, and which were rolled
//! back. Nothing here is linked or served; a history is changed as a whole, with the plan that it belongs to.

use crate::version_counts::VersionCounts;
use rankd_edge::date;
use std::sync::Arc;

/// How many versions of a plan are known.
const VERSIONS_MAX: usize = 10;
/// How many bytes the artifacts of all plans have together.
pub(crate) const ARTIFACT_BYTES_MAX: usize = 64 << 20;
/// How many digits of a digest are enough to name a version, if they are its alone.
pub(crate) const DIGITS_MIN: usize = 8;
const DIGITS_MAX: usize = 64;
/// How many digits of a digest people are shown.
const DIGITS_SHOWN: usize = 12;

/// One good version.
#[derive(Clone, Debug)]
pub(crate) struct KeptVersion {
    pub(crate) sha256: String,
    /// Its text; `None` where it is not kept, and the version cannot be served again.
    pub(crate) artifact: Option<Arc<str>>,
    /// When it was loaded, the last time.
    pub(crate) since: String,
    /// Where versions are counted.
    pub(crate) counts: Option<Arc<VersionCounts>>,
    /// Why it is not served although it may be what is in the file.
    pub(crate) rolled_back: Option<RolledBack>,
}

/// That a version was rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RolledBack {
    pub(crate) at: String,
    pub(crate) why: String,
}

/// That a plan stays at a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) at: String,
    pub(crate) sha256: String,
}

/// Why the good version in the file is not the one that is served.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) at: String,
    pub(crate) message: String,
}

/// Why digits name no version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoVersion {
    /// They are too few, or not those of a digest.
    NotADigest,
    Unknown,
    /// Several versions begin with them.
    Ambiguous(usize),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct VersionHistory {
    /// In the order in which the file brought them.
    versions: Vec<KeptVersion>,
    /// The digest of the last good artifact that the file had.
    newest: Option<String>,
    pub(crate) pinned: Option<Pin>,
}

impl VersionHistory {
    /// In the order in which the file brought them.
    pub(crate) fn list(&self) -> &[KeptVersion] {
        &self.versions
    }

    pub(crate) fn get(&self, sha256: &str) -> Option<&KeptVersion> {
        self.versions.iter().find(|version| version.sha256 == sha256)
    }

    /// Whether this is the last good artifact that the file had.
    pub(crate) fn is_newest(&self, sha256: &str) -> bool {
        self.newest.as_deref() == Some(sha256)
    }

    /// Whether the file had the same good artifact last.
    pub(crate) fn is_same_file(&self, other: &VersionHistory) -> bool {
        self.newest == other.newest
    }

    /// Whether this is in the file and was rolled back, with nothing else in the file since.
    pub(crate) fn is_refused(&self, sha256: &str) -> bool {
        self.is_newest(sha256) && self.get(sha256).is_some_and(|version| version.rolled_back.is_some())
    }

    /// Takes in a good version that the file has now, while `served` is in service.
    pub(crate) fn add(&mut self, mut version: KeptVersion, served: Option<&str>) {
        let known = self.versions.iter().position(|known| known.sha256 == version.sha256);
        if let Some(at) = known {
            let known = self.versions.remove(at);
            // What was counted stays with the digest. One that is only made again has been there all the time.
            version.counts = known.counts.or(version.counts);
            if self.is_newest(&known.sha256) {
                version.since = known.since;
            }
        }
        self.newest = Some(version.sha256.clone());
        self.versions.push(version);
        while self.versions.len() > VERSIONS_MAX {
            let oldest = self.versions.iter().position(|version| Some(&*version.sha256) != served);
            self.versions.remove(oldest.unwrap_or(0));
        }
    }

    /// The version whose digest begins with these digits.
    pub(crate) fn find(&self, digits: &str) -> Result<&KeptVersion, NoVersion> {
        let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if !(DIGITS_MIN..=DIGITS_MAX).contains(&digits.len()) || !digits.bytes().all(is_digit) {
            return Err(NoVersion::NotADigest);
        }
        let mut found = self.versions.iter().filter(|version| version.sha256.starts_with(digits));
        match (found.next(), found.count()) {
            (Some(version), 0) => Ok(version),
            (Some(_), others) => Err(NoVersion::Ambiguous(others + 1)),
            (None, _) => Err(NoVersion::Unknown),
        }
    }

    /// The version that came before this one and was not rolled back.
    pub(crate) fn before(&self, sha256: &str) -> Option<&KeptVersion> {
        let at = self.versions.iter().position(|version| version.sha256 == sha256)?;
        self.versions[..at].iter().rev().find(|version| version.rolled_back.is_none())
    }

    /// The last version that was not rolled back.
    pub(crate) fn newest_good(&self) -> Option<&KeptVersion> {
        self.versions.iter().rev().find(|version| version.rolled_back.is_none())
    }

    /// Back to a version: those after it are not served until the file has something else.
    pub(crate) fn roll_back_to(&mut self, sha256: &str, why: &str) {
        let Some(at) = self.versions.iter().position(|version| version.sha256 == sha256) else { return };
        let rolled_back = RolledBack { at: date::now(), why: why.to_owned() };
        self.versions[at].rolled_back = None;
        for version in &mut self.versions[at + 1..] {
            version.rolled_back.get_or_insert_with(|| rolled_back.clone());
        }
    }

    /// Stays at a version.
    pub(crate) fn pin(&mut self, sha256: &str) {
        self.pinned = Some(Pin { at: date::now(), sha256: sha256.to_owned() });
        for version in self.versions.iter_mut().filter(|version| version.sha256 == sha256) {
            version.rolled_back = None;
        }
    }

    /// Why the good version in the file is not the one that is served; `None` where it is.
    pub(crate) fn held(&self, served: &str) -> Option<Held> {
        let newest = self.newest.as_deref().filter(|newest| *newest != served)?;
        if let Some(Pin { at, sha256 }) = &self.pinned {
            let message = format!("the plan is pinned to {}; the file has {}", short(sha256), short(newest));
            return Some(Held { at: at.clone(), message });
        }
        let RolledBack { at, why } = self.get(newest)?.rolled_back.as_ref()?;
        let message = format!("{} was rolled back and is refused until the file changes: {why}", short(newest));
        Some(Held { at: at.clone(), message })
    }

    /// The bytes of all artifacts.
    pub(crate) fn bytes(&self) -> usize {
        self.versions.iter().filter_map(|version| version.artifact.as_ref()).map(|artifact| artifact.len()).sum()
    }

    /// The artifacts that may be forgotten while `served` is in service, each with when it was loaded. What is served in place of the file's
    /// own version cannot be made again without its artifact.
    pub(crate) fn forgettable(&self, served: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
        let is_held = move |version: &KeptVersion| Some(&*version.sha256) == served && !self.is_newest(&version.sha256);
        let kept = self.versions.iter().filter(|version| version.artifact.is_some());
        kept.filter(move |version| !is_held(version)).map(|version| (&*version.since, &*version.sha256))
    }

    pub(crate) fn forget_artifact(&mut self, sha256: &str) {
        for version in self.versions.iter_mut().filter(|version| version.sha256 == sha256) {
            version.artifact = None;
        }
    }
}

/// A digest as people are shown it.
pub(crate) fn short(sha256: &str) -> &str {
    sha256.get(..DIGITS_SHOWN).unwrap_or(sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(digit: char) -> KeptVersion {
        KeptVersion {
            sha256: digit.to_string().repeat(DIGITS_MAX),
            artifact: Some("{}".into()),
            since: format!("2026-01-0{digit}"),
            counts: None,
            rolled_back: None,
        }
    }

    fn history(digits: &str) -> VersionHistory {
        let mut history = VersionHistory::default();
        digits.chars().for_each(|digit| history.add(version(digit), None));
        history
    }

    fn sha(digit: char) -> String {
        version(digit).sha256
    }

    fn digits<'v>(versions: impl IntoIterator<Item = &'v KeptVersion>) -> String {
        versions.into_iter().filter_map(|version| version.sha256.chars().next()).collect()
    }

    #[test]
    fn the_last_ten_are_known_and_the_one_in_service_among_them() {
        assert_eq!(digits(history("0123456789ab").list()), "23456789ab");
        let mut pinned = history("0123456789");
        pinned.add(version('a'), Some(&sha('0')));
        assert_eq!(digits(pinned.list()), "023456789a");
        // One that comes again is the newest again.
        assert_eq!(digits(history("12321").list()), "321");
    }

    #[test]
    fn digits_name_a_version_if_they_are_its_alone() {
        let mut history = history("12");
        history.add(KeptVersion { sha256: format!("{}f", "1".repeat(63)), ..version('1') }, None);
        for (digits, expected) in [
            ("22222222", Ok("2")),
            (sha('1').as_str(), Ok("1")),
            ("11111111", Err(NoVersion::Ambiguous(2))),
            ("33333333", Err(NoVersion::Unknown)),
            ("2222222", Err(NoVersion::NotADigest)),
            ("2222222G", Err(NoVersion::NotADigest)),
            ("AAAAAAAA", Err(NoVersion::NotADigest)),
            ("ééééé", Err(NoVersion::NotADigest)),
            (format!("{}1", sha('1')).as_str(), Err(NoVersion::NotADigest)),
        ] {
            let found = history.find(digits).map(|version| &version.sha256[..1]);
            assert_eq!(found, expected, "{digits}");
        }
    }

    #[test]
    fn what_was_rolled_back_is_passed_over_until_the_file_has_it_again() {
        let mut history = history("123");
        let before = |history: &VersionHistory, digit| history.before(&sha(digit)).map(|found| digits([found]));
        assert_eq!(before(&history, '3').as_deref(), Some("2"));
        history.roll_back_to(&sha('2'), "it was bad");
        assert!(history.is_refused(&sha('3')) && !history.is_refused(&sha('2')));
        assert!(
            history.held(&sha('2')).is_some_and(|held| held.message.ends_with("until the file changes: it was bad"))
        );
        history.roll_back_to(&sha('1'), "this as well");
        assert_eq!(before(&history, '1'), None);
        // Another version comes: it is served, and the way back leads past those that were rolled back.
        history.add(version('4'), Some(&sha('1')));
        assert_eq!(history.held(&sha('4')), None);
        assert_eq!(before(&history, '4').as_deref(), Some("1"));
        // The file has had something else since.
        history.add(version('3'), Some(&sha('4')));
        assert!(!history.is_refused(&sha('3')));
        // The way forward is open, too.
        history.roll_back_to(&sha('2'), "");
        assert_eq!(history.newest_good().map(|found| digits([found])).as_deref(), Some("2"));
    }

    #[test]
    fn a_pin_says_what_waits_and_lifts_a_refusal() {
        let mut history = history("12");
        history.roll_back_to(&sha('1'), "");
        history.pin(&sha('2'));
        assert_eq!(history.held(&sha('2')), None);
        history.add(version('3'), Some(&sha('2')));
        let held = history.held(&sha('2')).map(|held| held.message);
        assert_eq!(held.as_deref(), Some("the plan is pinned to 222222222222; the file has 333333333333"));
        assert_eq!(history.newest_good().map(|found| digits([found])).as_deref(), Some("3"));
    }

    #[test]
    fn artifacts_are_forgotten_but_for_the_one_that_is_held() {
        let mut history = history("123");
        let forgettable = |history: &VersionHistory, served| -> Vec<String> {
            history.forgettable(Some(&sha(served))).map(|(_, sha256)| sha256[..1].to_owned()).collect()
        };
        assert_eq!(forgettable(&history, '3'), ["1", "2", "3"]);
        assert_eq!(forgettable(&history, '1'), ["2", "3"]);
        history.forget_artifact(&sha('2'));
        assert_eq!((history.bytes(), forgettable(&history, '1')), (4, vec!["3".to_owned()]));
    }
}
