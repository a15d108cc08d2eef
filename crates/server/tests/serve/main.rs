//! `eyewall serve`, through its binary and sockets: one scenario in each file.

#![cfg(test)]

#[path = "../common/mod.rs"]
mod common;

mod access_log;
mod administration;
mod administration_socket;
mod authorization;
mod body_cut_short;
mod broken_volume;
mod changed_file;
mod codings;
mod conditional;
mod configuration_file;
mod counted_once;
mod dead_origin;
mod demo;
mod descriptors;
mod files;
mod fragments;
mod head;
mod hop_by_hop;
mod http2_malformed;
mod ignored_cookies;
mod interim_responses;
mod kept_from_errors;
mod keys;
mod large_file;
mod late_validation;
mod lenient_fields;
mod life_of_a_response;
mod mad_origin;
mod methods;
mod not_stored;
mod odd_requests;
mod one_fetch_for_many;
mod origin_path;
mod outside_the_root;
mod overwritten_header;
mod purge;
mod purge_allowed;
mod purge_command;
mod purge_during_fill;
mod purge_soft;
mod query;
mod ready;
mod remembered_failures;
mod retried;
mod rules;
mod several_origins;
mod sighup;
mod sites;
mod slow_bodies;
mod slow_client;
mod slow_origin;
mod stale_when_unreachable;
mod starting;
mod stopping;
mod tls_origin;
mod too_large;
mod transfer_codings;
mod tree_crawled;
mod truncated_volume;
mod trusted_proxies;
mod volume_shared_with_tools;
