//! Who may ask for reviews where a client authority is set.

use http::StatusCode;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use berth::webhook::certificate::mint::Pair;

use super::{
    client::{Client, Protocol, review},
    server::Server,
};

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn client(&self) -> Pair {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Pair { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

#[tokio::test]
async fn reviews_are_answered_to_the_authoritys_clients_and_probes_to_everybody() {
    let authority = Authority::new();
    let server = Server::verifying(&authority.pem()).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut anonymous = Client::connect(&server, protocol).await.unwrap();
        for path in ["/mutate", "/adopt", "/validate"] {
            let refused = anonymous.post(path, review("p")).await.status;
            assert_eq!(refused, StatusCode::FORBIDDEN, "{path} {protocol:?}");
        }
        assert_eq!(anonymous.get("/healthz").await.status, StatusCode::OK);
        let mut known = Client::connect_as(&server, protocol, Some(&authority.client())).await.unwrap();
        assert_eq!(known.post("/mutate", review("p")).await.status, StatusCode::OK, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_certificate_of_somebody_else_gets_no_answer() {
    let server = Server::verifying(&Authority::new().pem()).await;
    let stranger = Authority::new().client();
    let answered = async {
        let mut client = Client::connect_as(&server, Protocol::Http1, Some(&stranger)).await.ok()?;
        let request = super::client::post("/mutate", "application/json", review("p"));
        client.send(request).await.ok()
    };
    assert!(
        answered.await.is_none(),
        "the handshake fails, at the latest when the server reads the certificate"
    );
}
