//! The way of a batch: cut by slots, sent to their nodes at once, and sent on where a slot has moved.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::Value;

use super::{Cluster, redirection};
use crate::driver::redis::address::Host;
use crate::driver::redis::cell::CellCall;
use crate::driver::redis::connection::Live;
use crate::driver::redis::fault;
use crate::driver::redis::keys::{lies_apart, slot_of};
use crate::driver::redis::node::Node;
use crate::driver::redis::replies::Replies;
use crate::driver::redis::steps::Request;
use crate::error::{Code, Error, Result};
use crate::port::{Answer, Failure, Step};

/// A node that takes longer is asked about at the others.
pub(super) const SLOW: Duration = Duration::from_millis(300);
/// How often a step follows a slot that moves.
const REDIRECTIONS: usize = 5;

/// Steps of one slot, and their places in the batch.
struct Part {
    slot: u16,
    places: Vec<usize>,
    steps: Vec<Step>,
    /// Whether they are one.
    all: bool,
}

/// Where a part is to go.
enum Way {
    /// Wherever the map says.
    Owner,
    /// Here, where the slot is coming to.
    Asking(Host),
}

/// The result of the parts that were sent to one node.
#[derive(Default)]
struct Delivery {
    answers: Vec<(usize, Answer)>,
    /// These were certainly not carried out.
    onward: Vec<(Part, Way)>,
}

impl Cluster {
    /// Carries the steps of a batch out, each where its lock lies. `all`: as one.
    pub(crate) async fn carry_out(self: &Arc<Self>, batch: &[Step], all: bool) -> Vec<Answer> {
        let mut parts: Vec<_> =
            cut(batch, all).into_iter().map(|part| (part, Way::Owner)).collect();
        if all && parts.len() > 1 {
            let failure = Failure::refused(fault::refusal(&self.address, "CROSSSLOT", None));
            return batch.iter().map(|_| Err(failure.clone())).collect();
        }
        let apart = |step: &Step| {
            let refused = || fault::refusal(&self.address, "CROSSSLOT", Some(&step.lock));
            lies_apart(&step.lock).then(|| Err(Failure::refused(refused())))
        };
        let mut answers: Vec<Option<Answer>> = batch.iter().map(apart).collect();
        for _ in 0..=REDIRECTIONS {
            if parts.is_empty() {
                break;
            }
            let loads = self.address_parts(std::mem::take(&mut parts), &mut answers);
            let sent =
                loads.into_iter().map(|((host, asking), parts)| self.deliver(host, asking, parts));
            let mut sent: FuturesUnordered<_> = sent.collect();
            while let Some(delivery) = sent.next().await {
                for (place, answer) in delivery.answers {
                    answers[place] = Some(answer);
                }
                parts.extend(delivery.onward);
            }
        }
        let restless = || {
            let message = "the lock's slot moves from node to node; try again";
            Err(Failure::refused(self.unavailable(message)))
        };
        answers.into_iter().map(|answer| answer.unwrap_or_else(restless)).collect()
    }

    /// Sorts parts by where they go.
    fn address_parts(
        self: &Arc<Self>,
        parts: Vec<(Part, Way)>,
        answers: &mut [Option<Answer>],
    ) -> BTreeMap<(Host, bool), Vec<Part>> {
        let mut loads: BTreeMap<_, Vec<Part>> = BTreeMap::new();
        let mut lost = false;
        {
            let state = self.state.lock();
            for (part, way) in parts {
                match (way, state.map.owner(part.slot)) {
                    (Way::Asking(host), _) => loads.entry((host, true)).or_default().push(part),
                    (Way::Owner, Some(host)) => {
                        loads.entry((host.clone(), false)).or_default().push(part);
                    }
                    (Way::Owner, None) => {
                        lost = true;
                        let message = "no node has the lock's slot now; try again";
                        let failure = Failure::refused(self.unavailable(message));
                        for place in part.places {
                            answers[place] = Some(Err(failure.clone()));
                        }
                    }
                }
            }
        }
        if lost {
            self.doubt();
        }
        loads
    }

    /// Sends parts to one node, in one pipeline.
    async fn deliver(self: &Arc<Self>, host: Host, asking: bool, parts: Vec<Part>) -> Delivery {
        let mut delivery = Delivery::default();
        let fail = |mut delivery: Delivery, failure: &Failure| {
            let places = parts.iter().flat_map(|part| &part.places);
            delivery.answers.extend(places.map(|place| (*place, Err(failure.clone()))));
            delivery
        };
        let node = match self.node(&host) {
            Ok(node) => node,
            Err(error) => return fail(delivery, &Failure::refused(error)),
        };
        let steps = parts.iter().flat_map(|part| &part.steps);
        let live = match self.reached(&node, steps).await {
            Ok(live) => live,
            Err(error) => return fail(delivery, &Failure::refused(error)),
        };
        // One request after another, each with its part and the places of its steps there.
        let mut plan = Vec::new();
        let mut from = Vec::new();
        for part in &parts {
            let requests =
                if part.all { vec![Request::all(&part.steps)] } else { Request::plan(&part.steps) };
            let mut at = 0;
            for request in requests {
                from.push((part, at..at + request.steps.len()));
                at += request.steps.len();
                plan.push(request);
            }
        }
        let exchange = node.exchange(&live, &plan, asking);
        let Replies { values, lack } = match self.watched(exchange).await {
            Ok(replies) => replies,
            Err(failure) => {
                self.doubt();
                // It may have been carried out, so it is not sent again; the cluster client of the crate would do that by itself.
                return fail(delivery, &failure);
            }
        };
        let mut answers = Vec::new();
        for ((request, (part, at)), reply) in plan.iter().zip(from).zip(values) {
            if let Some((to, moved)) = elsewhere(&reply, &host) {
                let way = self.redirected(part.slot, to, moved);
                let rest = Part {
                    slot: part.slot,
                    places: part.places[at.clone()].to_vec(),
                    steps: part.steps[at].to_vec(),
                    all: part.all,
                };
                // The node turned it away, so it was certainly not carried out and may be sent again.
                delivery.onward.push((rest, way));
                continue;
            }
            if is_down(&reply) {
                self.doubt();
            }
            request.answers(reply, &lack, &node.link.address, &mut answers);
            delivery.answers.extend(part.places[at].iter().copied().zip(answers.drain(..)));
        }
        delivery
    }

    /// Runs a script on one cell, where that lies.
    pub(crate) async fn run(self: &Arc<Self>, cell: &CellCall<'_>) -> Result<Value, Failure> {
        let mut way = Way::Owner;
        for _ in 0..=REDIRECTIONS {
            let asking = matches!(way, Way::Asking(_));
            let owner = match way {
                Way::Asking(host) => Some(host),
                Way::Owner => self.state.lock().map.owner(cell.slot()).cloned(),
            };
            let Some(host) = owner else {
                self.doubt();
                let message = "no node has the value's slot now; try again";
                return Err(Failure::refused(self.unavailable(message)));
            };
            let node = self.node(&host).map_err(Failure::refused)?;
            let live = self.reached(&node, []).await.map_err(Failure::refused)?;
            let reply = match self.watched(node.run(&live, cell, asking)).await {
                Ok(reply) => reply,
                Err(failure) => {
                    self.doubt();
                    return Err(failure);
                }
            };
            let Some((to, moved)) = elsewhere(&reply, &host) else {
                if is_down(&reply) {
                    self.doubt();
                }
                return Ok(reply);
            };
            way = self.redirected(cell.slot(), to, moved);
        }
        let message = "the value's slot moves from node to node; try again";
        Err(Failure::refused(self.unavailable(message)))
    }

    /// The connection to a node for these steps, or why there is none.
    async fn reached<'a>(
        self: &Arc<Self>,
        node: &Node,
        steps: impl IntoIterator<Item = &'a Step>,
    ) -> Result<Arc<Live>> {
        self.watched(node.link.live_for(steps)).await.map_err(|error| {
            self.doubt();
            // The node was left, not the cluster.
            let left = error.code() == Code::Closed && !self.state.lock().closed;
            if left { self.unavailable("the lock's node has gone; try again") } else { error }
        })
    }

    /// Takes note that a slot is elsewhere, `moved` for good.
    fn redirected(self: &Arc<Self>, slot: u16, to: Host, moved: bool) -> Way {
        if !moved {
            return Way::Asking(to);
        }
        self.state.lock().map.moved(slot, to);
        self.doubt();
        Way::Owner
    }

    /// Waits; as long as nothing comes, the node may have been replaced.
    async fn watched<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            let slow = self.runtime.sleep(SLOW);
            match select(work.as_mut(), slow).await {
                Either::Left((done, _)) => return done,
                Either::Right(_) => self.doubt(),
            }
        }
    }

    fn unavailable(&self, message: &'static str) -> Error {
        Error::new(Code::Unavailable, message).with("server", self.address.to_string())
    }
}

/// Where a slot is instead, and whether for good.
fn elsewhere(reply: &Value, asked: &Host) -> Option<(Host, bool)> {
    let Value::ServerError(error) = reply else { return None };
    let moved = error.code() == "MOVED";
    if !moved && error.code() != "ASK" {
        return None;
    }
    Some((redirection(error.details()?, asked)?, moved))
}

fn is_down(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.code() == "CLUSTERDOWN")
}

fn cut(batch: &[Step], all: bool) -> Vec<Part> {
    let mut parts: BTreeMap<u16, Part> = BTreeMap::new();
    let whole = |(_, step): &(usize, &Step)| !lies_apart(&step.lock);
    for (place, step) in batch.iter().enumerate().filter(whole) {
        let slot = slot_of(step.lock.as_str());
        let new = || Part { slot, places: Vec::new(), steps: Vec::new(), all };
        let part = parts.entry(slot).or_insert_with(new);
        part.places.push(place);
        part.steps.push(step.clone());
    }
    parts.into_values().collect()
}
