//! A server of the benchmark, started for a test: a program that prints its address on its first line.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

pub(crate) struct Started {
    pub(crate) process: Child,
    /// Its first line.
    pub(crate) line: String,
    pub(crate) address: String,
}

impl Started {
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the program");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut line).expect("a first line");
        let address = line.trim().rsplit("//").next().expect("an address").to_owned();
        Self { process, line, address }
    }

    /// Head and body of its response.
    pub(crate) fn get(&self, path: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
        let body = answer.split_off(end);
        (String::from_utf8(answer).expect("text").to_ascii_lowercase(), body)
    }
}
