//! The command line of `explain`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::operate::ServerPlace;

pub(super) const EXPLAIN_AFTER_HELP: &str = "\
Nothing is sent to an origin, nothing is stored, and no hits or misses are counted. The explanation takes the steps of the server for a \
request that comes now, without content. It leaves out other nodes of a fleet, requests that are under way, and the health of origins. Without \
--from, the request comes from no trusted proxy, and limits of clients are left out, too.

The values of cookies and of fields by which other clients have chosen a variant are not shown.

With --config, no server has to run: the file says how one would answer from its volume. It doesn't know the ports and the recent \
past of a running server. --cache overrides the volume's path.";

/// `eyewall explain`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("by").required(true).args(["server", "config"]))]
pub struct Explain {
    /// The address, such as `http://example.org/page`
    pub url: String,
    /// Ask this running server: the path of its socket, or `http://127.0.0.1:PORT`
    #[arg(long, value_name = "SERVER")]
    pub server: Option<ServerPlace>,
    /// The file with the token, which a server at a port requires
    #[arg(long, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// The configuration file of a server that needn't run
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The method of the request
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// A field of the request, such as 'Accept-Language: de'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = parse_field)]
    pub headers: Vec<(String, String)>,
    /// The address from which the request comes. If it is that of a trusted proxy, X-Forwarded-For and its like count
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<IpAddr>,
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
}

fn parse_field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("give a name, a colon and a value")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
