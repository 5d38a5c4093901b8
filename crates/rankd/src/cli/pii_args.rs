//! The flags that say what is written of values about persons.

use crate::cli::command_error::CommandError;
use clap::{Args, ValueEnum};
use rankd_edge::pii::{Pii, Salt};

#[derive(Args, Clone, Debug)]
pub(crate) struct PiiArgs {
    /// What the feature log has of keys that the registry marks with pii: nothing (omit), or a salted hash
    #[arg(long, help_heading = "Personal values", value_name = "WHAT", value_enum, default_value = "omit")]
    pii: PiiChoice,
    /// Salt of the hashes; a secret, so use the variable RANKD_PII_SALT
    #[arg(long, help_heading = "Personal values", value_name = "SALT")]
    pii_salt: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PiiChoice {
    Omit,
    Hash,
}

impl PiiArgs {
    pub(crate) fn pii(&self) -> Result<Pii, CommandError> {
        match self.pii {
            PiiChoice::Omit => Ok(Pii::Omit),
            PiiChoice::Hash => {
                let salt = self.pii_salt.as_deref().and_then(Salt::new);
                salt.map(Pii::Hash).ok_or_else(|| {
                    CommandError::Wrong("--pii hash needs a salt: set the variable RANKD_PII_SALT".to_owned())
                })
            }
        }
    }
}
