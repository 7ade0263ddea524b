/** The types of the face, the same in every package that has it. */
export type { Body } from './body.js';
export type { Client, Guarantees, Stats } from './client.js';
export type { ConnectOptions } from './connect.js';
export type { Election, Leader } from './election.js';
export type { Code } from './error.js';
export type { EventKind, EventListener, LockEvent } from './event.js';
export type { Gate } from './gate.js';
export type { Guard, Released } from './guard.js';
export type { Cron, Job, JobState, Reason, Run, Skipped, Start, StartOptions, UsingOptions } from './job.js';
export type { AcquireOptions, All, CampaignOptions, Lock } from './lock.js';
export type { ClientOptions, ElectionOptions, HoldOptions, JobOptions, LockOptions, VersionOptions, WaitOptions } from './options.js';
export type { Scope } from './scope.js';
export type { Holder, Info, LockState, Mode, Waiter } from './state.js';
export type { Snapshot, Swapped, Version } from './version.js';
