//! What is kept of a role's password.
//!
//! A secret that comes encrypted is kept as it comes; one that only looks like it is a password
//! like others. MD5 is not computed here: such secrets can be kept, for another server to use, and
//! nobody logs in with them.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::Run;

/// No secret is longer, in bytes.
const LONGEST: usize = 512;

/// `md5` and 32 hexadecimal digits.
pub(super) fn is_md5(secret: &str) -> bool {
    let digits = secret.strip_prefix("md5");
    digits.is_some_and(|d| d.len() == 32 && d.bytes().all(|b| b"0123456789abcdef".contains(&b)))
}

impl Run<'_> {
    /// The secret for a password as it was given; none for one that is empty, in whatever form.
    pub(super) fn secret(&mut self, password: &str) -> Result<Option<String>> {
        if password.is_empty() || self.host.opens(password, "") == Some(true) {
            let message = "empty string is not a valid password, clearing password";
            self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
            return Ok(None);
        }
        let md5 = is_md5(password);
        let encrypted = md5 || self.host.opens(password, "").is_some();
        if !encrypted {
            return self.host.password_verifier(password).map(Some);
        }
        if password.len() > LONGEST {
            let message = "encrypted password is too long";
            let detail = format!("Encrypted passwords must be no longer than {LONGEST} bytes.");
            return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message).detail(detail));
        }
        if md5 {
            let message = "setting an MD5-encrypted password";
            let detail = "MD5 password support is deprecated and will be removed in a future release of PostgreSQL.";
            let hint = "Refer to the PostgreSQL documentation for details about migrating to another password type.";
            self.warning(
                Error::new(state::WARNING_DEPRECATED_FEATURE, message)
                    .detail(detail)
                    .hint(hint),
            );
        }
        Ok(Some(password.to_owned()))
    }
}
