//! Certificates: the authorities that are trusted, and what a failure of TLS means for the user.

use std::env;
use std::error::Error as StdError;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use reqwest::Certificate;
use rustls::CertificateError;
use rustls::pki_types::{ServerName, UnixTime};

use crate::quoted;
use protocol::error::{Code, Error, Result};

/// Names a file of authorities in the PEM format.
const FILE: &str = "SSL_CERT_FILE";
/// Names folders of such files, separated by colons.
const FOLDERS: &str = "SSL_CERT_DIR";

/// Where systems keep the authorities that they trust in one file: Debian and Arch, Fedora, openSUSE, Alpine and macOS.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The variables by which the user names authorities, and what they name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub variable: &'static str,
    pub path: PathBuf,
    /// The authorities in the file. Those in a folder are not counted.
    pub authorities: Option<usize>,
}

/// What `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
///
/// # Errors
/// `TLS_FAILED` if a file cannot be read or holds no certificate, or a folder is missing.
pub fn named() -> Result<Vec<Named>> {
    let value = |name: &str| env::var_os(name).filter(|it| !it.is_empty());
    named_by(value(FILE), value(FOLDERS))
}

fn named_by(file: Option<OsString>, folders: Option<OsString>) -> Result<Vec<Named>> {
    let bad = |variable: &str, path: &Path, why: &str| {
        let message = format!("{variable} names {}, {why}", quoted(&path.to_string_lossy()));
        let fix = format!("name certificates in the PEM format in {variable}, or unset it");
        Error::new(Code::TlsFailed, message, fix)
    };
    let mut all = Vec::new();
    if let Some(path) = file.map(PathBuf::from) {
        let bytes = fs::read(&path).map_err(|e| bad(FILE, &path, &format!("which cannot be read: {e}")))?;
        let found = Certificate::from_pem_bundle(&bytes).map_or(0, |it| it.len());
        if found == 0 {
            return Err(bad(FILE, &path, "which holds no certificate in the PEM format"));
        }
        all.push(Named { variable: FILE, path, authorities: Some(found) });
    }
    for path in folders.iter().flat_map(env::split_paths).filter(|it| !it.as_os_str().is_empty()) {
        if !path.is_dir() {
            return Err(bad(FOLDERS, &path, "which is not a folder"));
        }
        all.push(Named { variable: FOLDERS, path, authorities: None });
    }
    Ok(all)
}

/// The authorities of the system and those of the user's file, where the user names any: on Linux, rustls reads what the
/// variables name in place of the system's; elsewhere it reads the system's alone.
///
/// # Errors
/// Those of [`named`].
pub(crate) fn beside_named() -> Result<Vec<Certificate>> {
    let named = named()?;
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let within = |path: &Path| Certificate::from_pem_bundle(&fs::read(path).ok()?).ok().filter(|it| !it.is_empty());
    let mut all = BUNDLES.iter().find_map(|path| within(path.as_ref())).unwrap_or_else(built_in);
    all.extend(named.iter().filter(|it| it.variable == FILE).filter_map(|it| within(&it.path)).flatten());
    Ok(all)
}

/// The authorities of Mozilla, as this build has them.
pub(crate) fn built_in() -> Vec<Certificate> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().filter_map(|der| Certificate::from_der(der).ok()).collect()
}

/// The fault of TLS that an error is. It may be nested several errors deep.
pub(crate) fn fault<'a>(e: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    e.downcast_ref().or_else(|| fault(e.downcast_ref::<io::Error>()?.get_ref()?))
}

/// The error for a server whose connection TLS refused: each fault in its own words, because each has another remedy.
pub(crate) fn refused(host: &str, fault: &rustls::Error, now: Timestamp) -> Error {
    let clock = format!("correct the clock of this machine, which says {}", date(now));
    let failed = |message: String, fix: String| Error::new(Code::TlsFailed, message, fix);
    let rustls::Error::InvalidCertificate(why) = fault else {
        return match fault {
            rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
                let fix = "set the base URL to http:// if the server does not encrypt";
                Error::new(Code::Network, format!("{host} does not speak TLS"), fix)
            }
            rustls::Error::PeerIncompatible(_) | rustls::Error::AlertReceived(_) => {
                let message = format!("{host} and pixir agree on no kind of TLS: {}", quoted(&fault.to_string()));
                failed(
                    message,
                    "let the server speak TLS 1.2 or 1.3, and ask for no certificate of the client".to_owned(),
                )
            }
            _ => failed(
                format!("the TLS connection to {host} failed: {}", quoted(&fault.to_string())),
                "check the server, and what inspects connections on the way to it".to_owned(),
            ),
        };
    };
    let renew = |clock: String| format!("renew the certificate of the server, or {clock} if that is wrong");
    match why {
        CertificateError::Expired => failed(format!("the certificate of {host} has expired"), renew(clock)),
        CertificateError::ExpiredContext { not_after, .. } => {
            failed(format!("the certificate of {host} expired on {}", day(*not_after)), renew(clock))
        }
        CertificateError::NotValidYet => failed(format!("the certificate of {host} is not valid yet"), clock),
        CertificateError::NotValidYetContext { not_before, .. } => {
            failed(format!("the certificate of {host} is valid from {} on", day(*not_before)), clock)
        }
        CertificateError::NotValidForName => {
            failed(format!("the certificate of {host} is for another host"), another_name(&[]))
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<String> = presented.iter().map(|it| plain_name(it)).collect();
            let asked = match expected {
                ServerName::DnsName(name) => name.as_ref().to_owned(),
                _ => host.to_owned(),
            };
            let is_for = if names.is_empty() { "no host".to_owned() } else { quoted(&names.join(", ")) };
            failed(format!("the certificate of {asked} is for {is_for}"), another_name(&names))
        }
        // An authority of the same name as a trusted one has another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => failed(
            format!("this machine does not trust the authority that issued the certificate of {host}"),
            "if it is your own, or that of a proxy which inspects connections, set SSL_CERT_FILE=/path/to/ca.pem: \
             it is trusted beside those of the system"
                .to_owned(),
        ),
        CertificateError::Revoked => failed(
            format!("the certificate of {host} was revoked by its authority"),
            "use another server, or ask its operator".to_owned(),
        ),
        _ => failed(
            format!("the certificate of {host} is not accepted: {}", quoted(&why.to_string())),
            "ask the operator of the server for a correct certificate".to_owned(),
        ),
    }
}

/// A name as rustls prints it, without the name of its kind: `DnsName("example.com")`.
fn plain_name(name: &str) -> String {
    let inside = name.split_once('(').map_or(name, |(_, inside)| inside.trim_end_matches(')'));
    inside.trim_matches('"').to_owned()
}

fn another_name(names: &[String]) -> String {
    match names.iter().find(|it| !it.contains('*')) {
        Some(name) => format!("use the name {} in the base URL, if that is the same server", quoted(name)),
        None => "use the name of the server that its certificate has in the base URL".to_owned(),
    }
}

fn day(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).map_or_else(|_| "a day after the year 9999".to_owned(), date)
}

fn date(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_words_and_its_remedy() {
        let now = Timestamp::from_second(1_767_225_600).expect("a time");
        let at = |seconds| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let name = ServerName::try_from("api.example").expect("a name");
        let rows = [
            (
                CertificateError::ExpiredContext { time: at(1_767_225_600), not_after: at(1_640_995_199) },
                "the certificate of h expired on 2021-12-31",
                "correct the clock of this machine, which says 2026-01-01",
            ),
            (
                CertificateError::NotValidYetContext { time: at(1), not_before: at(1_893_456_000) },
                "is valid from 2030-01-01 on",
                "correct the clock",
            ),
            (
                CertificateError::NotValidForNameContext {
                    expected: name,
                    presented: vec!["DnsName(\"*.example.com\")".into(), "DnsName(\"example.com\")".into()],
                },
                "the certificate of api.example is for *.example.com, example.com",
                "use the name example.com",
            ),
            (CertificateError::UnknownIssuer, "does not trust the authority", "SSL_CERT_FILE"),
            (CertificateError::Revoked, "was revoked", "another server"),
            (CertificateError::BadEncoding, "is not accepted", "ask the operator"),
        ];
        for (why, message, fix) in rows {
            let error = refused("h", &rustls::Error::InvalidCertificate(why.clone()), now);
            assert_eq!(error.code, Code::TlsFailed, "{why:?}");
            assert!(error.message.contains(message), "{}", error.message);
            let remedy = format!("{:?}", error.remedy);
            assert!(remedy.contains(fix), "{why:?}: {remedy}");
        }
    }

    #[test]
    fn a_variable_that_names_no_certificate_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let plain = folder.path().join("plain.pem");
        fs::write(&plain, "no certificate").expect("write");
        let missing = folder.path().join("nope.pem");
        for (file, folders, variable) in
            [(Some(&missing), None, FILE), (Some(&plain), None, FILE), (None, Some(&missing), FOLDERS)]
        {
            let error = named_by(file.map(|it| it.into()), folders.map(|it| it.into())).expect_err("it is refused");
            assert!(error.message.starts_with(&format!("{variable} names ")), "{}", error.message);
        }
        assert_eq!(named_by(None, None).expect("nothing is named"), []);
        let found = named_by(None, Some(folder.path().into())).expect("a folder");
        assert_eq!((found[0].variable, found[0].authorities), (FOLDERS, None));
    }
}
