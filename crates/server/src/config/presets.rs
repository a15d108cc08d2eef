//! The shipped presets: rules that Eyewall puts before those of the file.

use serde::{Deserialize, Serialize};

use super::rule::Rule;

/// The name of shipped rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Caches pages for a minute, except for visitors with a session.
    Blog,
    /// The same for the program of this name.
    Wordpress,
    /// Caches files, for as long as their type suggests.
    Static,
    /// The wiki of this name.
    Mediawiki,
    /// The wiki of this name.
    Dokuwiki,
    /// The content management system of this name.
    Drupal,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    rule: Vec<Rule>,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Blog, Self::Wordpress, Self::Static, Self::Mediawiki, Self::Dokuwiki, Self::Drupal];

    /// As in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blog => "blog",
            Self::Wordpress => "wordpress",
            Self::Static => "static",
            Self::Mediawiki => "mediawiki",
            Self::Dokuwiki => "dokuwiki",
            Self::Drupal => "drupal",
        }
    }

    /// Its rules as text, in the notation of the file except for the missing `site.` before `rule`.
    pub fn text(self) -> &'static str {
        match self {
            Self::Blog => include_str!("presets/blog.toml"),
            Self::Wordpress => include_str!("presets/wordpress.toml"),
            Self::Static => include_str!("presets/static.toml"),
            Self::Mediawiki => include_str!("presets/mediawiki.toml"),
            Self::Dokuwiki => include_str!("presets/dokuwiki.toml"),
            Self::Drupal => include_str!("presets/drupal.toml"),
        }
    }

    /// Its rules.
    ///
    /// # Errors
    /// A message, if the shipped text is broken. Tests make sure that it isn't.
    pub fn rules(self) -> Result<Vec<Rule>, String> {
        let rules: Rules = toml::from_str(self.text()).map_err(|error| format!("preset {}: {error}", self.name()))?;
        Ok(rules.rule)
    }
}

/// Parameters by which campaigns and networks follow people from site to site. Pages don't depend on them.
/// The list has only names with no other use.
pub const TRACKERS: [&str; 33] = [
    "utm_*",
    "fbclid",
    "gclid",
    "gclsrc",
    "gbraid",
    "wbraid",
    "gad_source",
    "gad_campaignid",
    "dclid",
    "msclkid",
    "yclid",
    "ysclid",
    "ymclid",
    "twclid",
    "ttclid",
    "igshid",
    "igsh",
    "li_fat_id",
    "epik",
    "rdt_cid",
    "srsltid",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "_hsenc",
    "_hsmi",
    "hsCtaTracking",
    "__hssc",
    "__hstc",
    "__hsfp",
    "_ga",
    "_gl",
    "_openstat",
];

/// Cookies that scripts of analytics and advertising set and read in the browser. Pages don't depend on them. The list has no
/// cookies of consent, because programs make different pages by them.
pub const ANALYTICS: [&str; 27] = [
    "_ga",
    "_ga_*",
    "_gid",
    "_gat",
    "_gat_*",
    "_gac_*",
    "_gcl_*",
    "_dc_gtm_*",
    "__utma",
    "__utmb",
    "__utmc",
    "__utmt",
    "__utmt_*",
    "__utmv",
    "__utmz",
    "_fbp",
    "_fbc",
    "_pk_*",
    "_hj*",
    "_clck",
    "_clsk",
    "_uetsid",
    "_uetvid",
    "_ym_*",
    "__hstc",
    "__hssc",
    "__hssrc",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_presets_can_be_read() {
        for preset in Preset::ALL {
            let rules = preset.rules().unwrap();
            assert!(!rules.is_empty() && rules.iter().all(|rule| rule.name.is_some()), "{}", preset.name());
        }
    }
}
