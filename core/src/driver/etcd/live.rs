//! One connection to one member. gRPC's codec is tonic's; the connection is made here, so that it is known what was sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use event_listener::{Event, EventListener};
use futures_channel::mpsc::UnboundedReceiver;
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::http::uri::{PathAndQuery, Uri};
use hyper::http::{Request as HttpRequest, Response as HttpResponse};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;

use super::address::{Address, Host};
use super::fault::{Broken, absent};
use super::message::{Call, WatchAnswer, WatchRequest};
use crate::driver::tcp;
use crate::error::{Error, Result};
use crate::port::RuntimeHandle;

/// The longest answer that is taken: a long queue is one.
const LONGEST: usize = 64 << 20;

/// A connection that worked when last seen.
pub(super) struct Live {
    pub(super) host: Host,
    grpc: Grpc<Wire>,
    /// Says who we are.
    pub(super) token: Option<MetadataValue<Ascii>>,
    retired: AtomicBool,
    left: Event,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Live {
    /// Connects, without saying who we are.
    pub(super) async fn connect(
        address: &Address,
        host: &Host,
        runtime: &RuntimeHandle,
    ) -> Result<Self> {
        let stream: Box<dyn Stream> = match &address.tls {
            Some(tls) => Box::new(tls.connect(&host.name, host.port, runtime).await?),
            None => Box::new(
                tcp::connect(&host.name, host.port, runtime)
                    .await
                    .map_err(|error| absent(host, &error.to_string()))?,
            ),
        };
        let scheme = if address.tls.is_some() { "https" } else { "http" };
        let origin: Uri = format!("{scheme}://{host}")
            .parse()
            .map_err(|_| Error::invalid("url", "the host is neither a name nor an address"))?;
        let shaken = handshake(Tasks(runtime.clone()), TokioIo::new(stream)).await;
        let (requests, connection) = shaken.map_err(|error| absent(host, &error.to_string()))?;
        runtime.spawn(Box::pin(async move {
            // Whoever is under way on it is told.
            let _ = connection.await;
        }));
        let grpc = Grpc::with_origin(Wire(requests), origin).max_decoding_message_size(LONGEST);
        let (host, retired, left) = (host.clone(), AtomicBool::new(false), Event::new());
        Ok(Self { host, grpc, token: None, retired, left })
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn call<C: Call>(&self, call: C) -> Result<C::Answer, Status> {
        let path = PathAndQuery::from_static(C::PATH);
        let codec = ProstCodec::<C, C::Answer>::new();
        let answer = self.grpc.clone().unary(self.request(call), path, codec).await?;
        Ok(answer.into_inner())
    }

    /// Opens a stream of watches.
    pub(super) async fn watch(
        &self,
        requests: UnboundedReceiver<WatchRequest>,
    ) -> Result<Streaming<WatchAnswer>, Status> {
        let path = PathAndQuery::from_static(WatchRequest::PATH);
        let codec = ProstCodec::<WatchRequest, WatchAnswer>::new();
        let answer = self.grpc.clone().streaming(self.request(requests), path, codec).await?;
        Ok(answer.into_inner())
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        // A member that is cut off from the others says so, instead of letting us wait.
        metadata.insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = &self.token {
            metadata.insert("token", token.clone());
        }
        request
    }

    /// Nothing more is sent over it. Answers whether this was the first to say so.
    pub(super) fn retire(&self) -> bool {
        let first = !self.retired.swap(true, Ordering::Relaxed);
        self.left.notify(usize::MAX);
        first
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Completes when nothing more is sent over it, if it is listened to before one looks whether that is so already.
    pub(super) fn leaving(&self) -> EventListener {
        self.left.listen()
    }
}

/// Runs a connection's tasks where the client runs.
#[derive(Clone)]
struct Tasks(RuntimeHandle);

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.0.spawn(Box::pin(async move {
            task.await;
        }));
    }
}

/// The connection as gRPC sees it.
#[derive(Clone)]
struct Wire(SendRequest<Body>);

impl Service<HttpRequest<Body>> for Wire {
    type Response = HttpResponse<Incoming>;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Broken>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.0.poll_ready(context).map_err(|_| Broken::Unsent)
    }

    fn call(&mut self, request: HttpRequest<Body>) -> Self::Future {
        let answer = self.0.try_send_request(request);
        Box::pin(async move {
            answer.await.map_err(|mut error| match error.take_message() {
                // hyper gives the request back, so it has not left, and another member may be asked.
                Some(_) => Broken::Unsent,
                None => Broken::Sent(error.into_error()),
            })
        })
    }
}
