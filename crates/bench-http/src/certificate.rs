//! A root certificate, and a server's certificate that it has signed, for measurements over TLS.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256};

use crate::error::{Error, Result};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder for ca.pem, server.pem (the chain) and server.key
    folder: PathBuf,
    /// The server's name
    #[arg(default_value = "localhost")]
    name: String,
}

/// Makes them. Both keys are of P-256.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (root, server, key) = signed(&arguments.name)
        .map_err(|error| Error::Tls { what: "making certificates".to_owned(), why: error.to_string() })?;
    for (name, content) in [("ca.pem", &root), ("server.pem", &server), ("server.key", &key)] {
        let path = arguments.folder.join(name);
        std::fs::write(&path, content).map_err(Error::io(path.display().to_string()))?;
    }
    Ok(())
}

fn signed(name: &str) -> std::result::Result<(String, String, String), rcgen::Error> {
    let root_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut root = CertificateParams::new(Vec::new())?;
    // OpenSSL takes a certificate whose issuer has its own name for one that signs itself.
    root.distinguished_name.push(DnType::CommonName, "root of a measurement");
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_certificate = root.self_signed(&root_key)?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let issuer = Issuer::from_params(&root, &root_key);
    let mut server = CertificateParams::new(vec![name.to_owned()])?;
    server.distinguished_name.push(DnType::CommonName, name);
    let certificate = server.signed_by(&key, &issuer)?;
    Ok((root_certificate.pem(), certificate.pem(), key.serialize_pem()))
}
