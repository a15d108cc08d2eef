//! A compressed form: its key, how it is found, and the fields that it is sent with.

use bytes::Bytes;
use eyewall::Hit;
use eyewall_http::coding::Coding;
use http::HeaderMap;
use http::header::{ACCEPT_RANGES, CONTENT_ENCODING};

use super::entity_tag;
use crate::head::{Compressible, HeadView, Kind, Version};
use crate::pages::Pages;
use crate::store::Store;

/// The result of the look-up of a form.
#[derive(Debug)]
pub enum Form<T> {
    /// It is there.
    Found(T),
    /// It would not be smaller than the identity.
    NotSmaller,
    /// It is not there, or it belongs to another body.
    Absent,
}

/// The form that is sent in place of an identity.
pub type Chosen<T> = Option<(Coding, T)>;

/// The key of a form. No other key has a blank and these words behind the key of a response: a vary index, a body in fragments and
/// the answers to QUERY have digits or `query` there.
pub fn key(identity: &[u8], coding: Coding) -> Vec<u8> {
    [identity, b" in ", coding.name().as_bytes()].concat()
}

/// Gives the fields of the identity those of a form. Ranges are answered from the identity.
pub fn dress(fields: &mut HeaderMap, coding: Coding) {
    fields.insert(CONTENT_ENCODING, coding.value());
    fields.remove(ACCEPT_RANGES);
    entity_tag::set_form(fields, coding);
}

/// The first of these codings that has a form. `look` looks one up, `ask` asks for the form that the client wants most, if it is
/// absent.
pub fn choose<T>(
    wanted: impl Iterator<Item = Coding>,
    mut look: impl FnMut(Coding) -> Form<T>,
    ask: impl FnOnce(Coding),
) -> Chosen<T> {
    let (mut ask, mut chosen) = (Some(ask), None);
    for coding in wanted {
        match look(coding) {
            Form::Found(form) => {
                chosen = Some((coding, form));
                break;
            }
            Form::NotSmaller => break,
            Form::Absent => {
                if let Some(ask) = ask.take() {
                    ask(coding);
                }
            }
        }
    }
    chosen
}

impl Pages {
    /// Chooses the form of the response under this key for a client with these codings, in the order of its preference.
    pub(crate) fn form(&self, key: &[u8], compressible: Compressible, wanted: &[Coding]) -> Chosen<Bytes> {
        let look = |coding| match self.store.form(&self::key(key, coding), compressible.version) {
            Form::Found(hit) => self.store.intact(hit).map_or(Form::Absent, Form::Found),
            Form::NotSmaller => Form::NotSmaller,
            Form::Absent => Form::Absent,
        };
        choose(wanted.iter().copied(), look, |coding| self.ask_for_form(key, compressible, coding))
    }
}

impl Store {
    /// The form under a key that belongs to the body of this version. Only a form that is found is counted as a hit.
    pub fn form(&self, key: &[u8], version: Version) -> Form<Hit<'_>> {
        let is_of_version =
            |hit: &Hit<'_>| HeadView::of(hit.metadata()).is_some_and(|head| head.kind == Kind::Form(version));
        match self.hit_if(key, is_of_version) {
            Some(hit) if hit.is_empty() => Form::NotSmaller,
            Some(hit) => Form::Found(hit),
            None => Form::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Coding::{Brotli, Gzip, Zstandard};
    use super::*;

    /// The coding that is sent, and the one that is asked for, if these forms are there.
    fn chosen(wanted: &[Coding], there: &[Coding], not_smaller: &[Coding]) -> (Option<Coding>, Option<Coding>) {
        let look = |coding| match coding {
            coding if there.contains(&coding) => Form::Found(()),
            coding if not_smaller.contains(&coding) => Form::NotSmaller,
            _ => Form::Absent,
        };
        let mut asked = None;
        let chosen = choose(wanted.iter().copied(), look, |coding| asked = Some(coding));
        (chosen.map(|(coding, ())| coding), asked)
    }

    #[test]
    fn the_first_form_is_sent_and_the_first_absent_one_before_it_is_asked_for() {
        let wanted = [Brotli, Zstandard, Gzip];
        for (there, not_smaller, expected) in [
            (&[][..], &[][..], (None, Some(Brotli))),
            (&[Brotli, Gzip], &[], (Some(Brotli), None)),
            (&[Gzip], &[], (Some(Gzip), Some(Brotli))),
            (&[], &[Brotli], (None, None)),
            (&[Gzip], &[Zstandard], (None, Some(Brotli))),
        ] {
            assert_eq!(chosen(&wanted, there, not_smaller), expected, "{there:?} {not_smaller:?}");
        }
        assert_eq!(chosen(&[], &[Brotli], &[]), (None, None));
    }
}
