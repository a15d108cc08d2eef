//! `eyewall-demo-origin [ADDRESS]`: serves the demo on a free port if no address is given, and prints its own on the first line.

#![forbid(unsafe_code)]

use std::io;
use std::net::TcpListener;

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(address)?;
    println!("demo origin on http://{}", listener.local_addr()?);
    eyewall_demo_origin::serve(listener)
}
