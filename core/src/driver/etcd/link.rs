//! The way to the cluster: one connection to one member, made when it is needed; the next member when that one fails. gRPC's codec is tonic's;
//! the connection is made here ([`Live`]), so that it is known what was sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

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
use tonic::{Request, Status as Refusal, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;

use super::fault::{Broken, Fault, Next, absent, ended, is_too_old, judge, too_old, unanswered};
use super::message::{Authenticate, Call, Status, WatchAnswer, WatchRequest};
use crate::driver::hosts::Host;
use crate::driver::members::Address;
use crate::driver::tcp;
use crate::driver::within::{on_task, within};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::port::failure::Failures;
use crate::port::{Failure, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// No heartbeat takes longer, nor any call or attempt to connect if there is another member to ask: a lease that is kept alive says
/// nothing of a member that is cut off.
const PATIENCE: Duration = Duration::from_millis(900);

/// The connection of one client to one member, and which member is next.
pub(super) struct Link {
    pub(super) address: Address,
    pub(super) runtime: RuntimeHandle,
    timeout: Duration,
    beat_timeout: Duration,
    connect_timeout: Duration,
    /// A password is slow to be checked, and is meant to be.
    login_timeout: Duration,
    state: Mutex<Members>,
    /// Held by the one who connects.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Members {
    live: Option<Arc<Live>>,
    /// The member that is asked next.
    at: usize,
    /// Attempts to connect to all members.
    failures: Failures,
    closed: bool,
}

impl Link {
    /// Connects, or says why not.
    pub(super) async fn connect(
        address: Address,
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Arc<Self>> {
        let alone = address.hosts.len() == 1;
        let bounded = |time: Duration| if alone { time } else { time.min(PATIENCE) };
        let beat_timeout = options.timeout.min(PATIENCE);
        let timeout = bounded(options.timeout);
        let login_timeout = options.connect_timeout;
        let connect_timeout = bounded(login_timeout);
        let (state, connecting) = Default::default();
        let link = Arc::new(Self {
            address,
            runtime,
            timeout,
            beat_timeout,
            connect_timeout,
            login_timeout,
            state,
            connecting,
        });
        // The first answer is part of reaching the store.
        let status = match link.send(Status {}, || true, login_timeout).await {
            Ok(status) => status,
            // A server of 3.6 tells its version to administrators only. The user is known, and 3.6 is new enough.
            Err(failure) if is_for_administrators(&failure.error) => return Ok(link),
            Err(failure) => return Err(failure.error),
        };
        if is_too_old(&status.version) {
            return Err(too_old(&status.version).with("server", link.address.to_string()));
        }
        Ok(link)
    }

    /// Sends a request, on a task of its own: once sent it runs to its end, whoever stays for it.
    pub(super) async fn call<C: Call>(self: &Arc<Self>, call: C) -> Result<C::Answer, Failure> {
        self.send(call, || true, self.timeout).await
    }

    /// The same for a heartbeat, which is not sent any more once it is not wanted.
    pub(super) async fn beat<C: Call>(
        self: &Arc<Self>,
        call: C,
        wanted: impl Fn() -> bool + Send + 'static,
    ) -> Result<C::Answer, Failure> {
        self.send(call, wanted, self.beat_timeout).await
    }

    async fn send<C: Call>(
        self: &Arc<Self>,
        call: C,
        wanted: impl Fn() -> bool + Send + 'static,
        timeout: Duration,
    ) -> Result<C::Answer, Failure> {
        let link = self.clone();
        let work = async move { link.carry_out(call, wanted, timeout).await };
        on_task(&self.runtime, work).await.map_err(Failure::unknown)?
    }

    /// Asks one member after the other for as long as it is certain that none has done anything.
    async fn carry_out<C: Call>(
        &self,
        call: C,
        wanted: impl Fn() -> bool,
        timeout: Duration,
    ) -> Result<C::Answer, Failure> {
        let mut last = None;
        for _ in 0..=self.address.hosts.len() {
            let live = self.live().await.map_err(Failure::refused)?;
            if !wanted() {
                return Err(ended());
            }
            let fault = match self.ask(&live, call.clone(), timeout).await {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            self.leave(&live, fault.next);
            let certain = fault.failure.applied == crate::port::Applied::No;
            if !certain || fault.next == Next::Keep {
                return Err(fault.failure);
            }
            last = Some(fault.failure);
        }
        Err(last.unwrap_or_else(ended))
    }

    async fn ask<C: Call>(
        &self,
        live: &Live,
        call: C,
        timeout: Duration,
    ) -> Result<C::Answer, Fault> {
        let Some(answer) = within(&self.runtime, timeout, live.call(call)).await else {
            let error = unanswered(&live.host, "it took too long");
            return Err(Fault { failure: Failure::unknown(error), next: Next::Member });
        };
        answer.map_err(|status| judge(&live.host, &status))
    }

    /// Goes on as a failure on a connection says.
    pub(super) fn leave(&self, live: &Arc<Live>, next: Next) {
        if next == Next::Keep || !live.retire() {
            return;
        }
        let mut state = self.state.lock();
        if state.live.as_ref().is_some_and(|present| Arc::ptr_eq(present, live)) {
            state.live = None;
            if next == Next::Member {
                state.at = (state.at + 1) % self.address.hosts.len();
            }
        }
    }

    /// The connection; one is made if there is none. All members are tried, each once.
    pub(super) async fn live(&self) -> Result<Arc<Live>> {
        let before = match self.present()? {
            Ok(live) => return Ok(live),
            Err(failed) => failed,
        };
        let _connecting = self.connecting.lock().await;
        if let Ok(live) = self.present()? {
            return Ok(live);
        }
        // Somebody else has tried while this one waited.
        if let Some(why) = self.state.lock().failures.since(before) {
            return Err(why);
        }
        let mut failure = None;
        for _ in &self.address.hosts {
            match self.attempt().await {
                Ok(live) => {
                    let mut state = self.state.lock();
                    if state.closed {
                        return Err(Error::closed());
                    }
                    let live = Arc::new(live);
                    state.live = Some(live.clone());
                    return Ok(live);
                }
                Err(error) => failure = Some(error),
            }
            let mut state = self.state.lock();
            state.at = (state.at + 1) % self.address.hosts.len();
        }
        let failure = failure.unwrap_or_else(Error::closed);
        self.state.lock().failures.add(&failure);
        Err(failure)
    }

    /// The connection, or how many attempts have failed.
    fn present(&self) -> Result<Result<Arc<Live>, u64>> {
        let state = self.state.lock();
        if state.closed {
            return Err(Error::closed());
        }
        Ok(state.live.clone().ok_or(state.failures.count()))
    }

    /// Connects to the member whose turn it is, and says who we are.
    async fn attempt(&self) -> Result<Live> {
        let at = self.state.lock().at;
        let host = &self.address.hosts[at];
        let connecting = Live::connect(&self.address, host, &self.runtime);
        let mut live = self.within(self.connect_timeout, host, connecting).await?;
        if let Some((name, password)) = self.address.user.clone() {
            let login = async {
                let known = live.call(Authenticate { name, password }).await;
                let known = known.map_err(|status| judge(host, &status).failure.error)?;
                known.token.parse().map_err(|_| absent(host, "its token is no text"))
            };
            live.token = Some(self.within(self.login_timeout, host, login).await?);
        }
        Ok(live)
    }

    async fn within<T>(
        &self,
        time: Duration,
        host: &Host,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let late = || Err(absent(host, "it took too long"));
        within(&self.runtime, time, work).await.unwrap_or_else(late)
    }

    pub(super) fn check_open(&self) -> Result<()> {
        self.present().map(drop)
    }

    /// Lets go of the connection. Calls after it fail with the code `closed`.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let live = state.live.take();
        drop(state);
        if let Some(live) = live {
            live.retire();
        }
    }
}

/// Whether a known user was refused, rather than an unknown one.
fn is_for_administrators(error: &Error) -> bool {
    error.fields().get("reply").is_some_and(|reply| reply.ends_with("permission denied"))
}

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
            Some(tls) => Box::new(tls.connect(host, runtime).await?),
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
    pub(super) async fn call<C: Call>(&self, call: C) -> Result<C::Answer, Refusal> {
        let path = PathAndQuery::from_static(C::PATH);
        let codec = ProstCodec::<C, C::Answer>::new();
        let answer = self.grpc.clone().unary(self.request(call), path, codec).await?;
        Ok(answer.into_inner())
    }

    /// Opens a stream of watches.
    pub(super) async fn watch(
        &self,
        requests: UnboundedReceiver<WatchRequest>,
    ) -> Result<Streaming<WatchAnswer>, Refusal> {
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
