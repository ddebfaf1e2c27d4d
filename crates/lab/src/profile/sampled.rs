//! What is told of a profile in a line.

use serde::Serialize;

use super::{Hot, Profile};

/// A profile and what is told of it in a line.
#[derive(Clone, Debug, Serialize)]
pub struct Sampled {
    #[serde(flatten)]
    pub profile: Profile,
    /// The share of stacks that pass through the structure, where it has functions of its own.
    pub inside: Option<f64>,
    pub hottest: Vec<Hot>,
}

impl Sampled {
    /// Functions that are worth a line.
    const HOTTEST: usize = 8;

    pub fn of(profile: Profile, functions: &[&str]) -> Sampled {
        Sampled {
            inside: match functions {
                [] => None,
                some => profile.share(some),
            },
            hottest: profile.hottest(Sampled::HOTTEST),
            profile,
        }
    }
}
