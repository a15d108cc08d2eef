//! Objects in a bucket of S3. Rules of the bucket remove what nobody asks for; this store removes objects that it finds too old.

use std::time::Duration;

use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{Certificate, ClientOptions, ObjectStoreExt as _, RetryConfig};

use crate::frame::Name;
use crate::settings::S3Settings;
use crate::store::{Kept, StoreError};

/// The timeout of a connection's beginning.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct S3Store {
    bucket: AmazonS3,
    prefix: String,
}

impl S3Store {
    /// # Errors
    /// The settings make no sense.
    pub(crate) fn new(settings: &S3Settings) -> Result<Self, StoreError> {
        let mut client = ClientOptions::new().with_connect_timeout(CONNECT_TIMEOUT).with_timeout(REQUEST_TIMEOUT);
        for certificate in
            settings.authority.as_deref().map(Certificate::from_pem_bundle).transpose()?.unwrap_or_default()
        {
            client = client.with_root_certificate(certificate);
        }
        // The store is asked again by the next request. A retry would only make this one late.
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let builder = match &settings.credentials {
            None => AmazonS3Builder::from_env(),
            Some(credentials) => AmazonS3Builder::new()
                .with_access_key_id(&credentials.access_key_id)
                .with_secret_access_key(&credentials.secret_access_key),
        };
        let mut builder = builder.with_bucket_name(&settings.bucket).with_region(&settings.region).with_retry(retry);
        // Not all stores know the request that deletes many.
        builder = builder.with_disable_bulk_delete(true);
        if let Some(endpoint) = &settings.endpoint {
            client = client.with_allow_http(endpoint.starts_with("http://"));
            builder = builder.with_endpoint(endpoint);
        }
        let bucket = builder.with_client_options(client).build()?;
        Ok(Self { bucket, prefix: settings.prefix.clone() })
    }

    pub(crate) async fn get(&self, name: &Name) -> Result<Option<Bytes>, StoreError> {
        match self.bucket.get(&self.path(name)).await {
            Ok(found) => Ok(Some(found.bytes().await?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn put(&self, name: &Name, object: Bytes) -> Result<Kept, StoreError> {
        self.bucket.put(&self.path(name), object.into()).await?;
        Ok(Kept::Stored(None))
    }

    pub(crate) async fn remove(&self, name: &Name) -> Result<(), StoreError> {
        Ok(self.bucket.delete(&self.path(name)).await?)
    }

    /// The digits in front spread the objects, since S3 bounds the requests for each prefix.
    fn path(&self, name: &Name) -> Path {
        Path::from_iter([&self.prefix, &name.as_str()[..2], name.as_str()])
    }
}
