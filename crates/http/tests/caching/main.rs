//! The rules of a shared cache, section by section: a message, and what the cache does with it.

#![cfg(test)]

mod rfc5861_stale;
mod rfc8246_immutable;
mod rfc9110_12_preferences;
mod rfc9111_3_storing;
mod rfc9111_4_1_variants;
mod rfc9111_4_2_1_lifetime;
mod rfc9111_4_2_3_age;
mod rfc9111_4_2_4_stale;
mod rfc9111_4_3_validation;
mod rfc9111_5_2_1_requests;
mod rfc9111_5_2_directives;
mod rfc9213_targeted;
mod set_by_the_operator;
mod support;
mod terms_as_bytes;
