//! The functions that `io.github.fencelock.Natives` declares. A panic in here becomes a Java exception with code `internal`.

use std::any::Any;

use fencelock::options::TABLE;
use jni::errors::{Error, ErrorPolicy, Result};
use jni::objects::{JByteArray, JClass};
use jni::strings::JNIString;
use jni::sys::{jboolean, jdouble, jlong};
use jni::{Env, EnvUnowned, jni_mangle, jni_str};
use serde_json::{Value, json};

use crate::hub::hub;
use crate::parcel;

/// Makes whatever goes wrong in a native a defect of ours: nothing else can.
struct Internal;

impl Internal {
    fn throw(env: &mut Env<'_>, message: &str) -> Result<()> {
        if env.exception_check() {
            return Ok(());
        }
        env.throw_new(jni_str!("io/github/fencelock/InternalException"), JNIString::from(message))
    }
}

impl<T: Default> ErrorPolicy<T, Error> for Internal {
    type Captures<'unowned: 'native, 'native> = ();

    fn on_error<'unowned: 'native, 'native>(
        env: &mut Env<'unowned>,
        _captures: &mut (),
        error: Error,
    ) -> Result<T> {
        Self::throw(env, &error.to_string())?;
        Ok(T::default())
    }

    fn on_panic<'unowned: 'native, 'native>(
        env: &mut Env<'unowned>,
        _captures: &mut (),
        panic: Box<dyn Any + Send + 'static>,
    ) -> Result<T> {
        let text = panic.downcast_ref::<&str>().copied();
        let said = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::throw(env, said.unwrap_or("a panic that said nothing"))?;
        Ok(T::default())
    }
}

fn read(env: &Env<'_>, bytes: &JByteArray<'_>) -> Result<Value> {
    let bytes = env.convert_byte_array(bytes)?;
    Ok(parcel::read(&bytes).expect("the Java side writes values"))
}

fn written<'local>(env: &mut Env<'local>, value: &Value) -> Result<JByteArray<'local>> {
    let mut bytes = Vec::new();
    parcel::write(&mut bytes, value);
    env.byte_array_from_slice(&bytes)
}

/// Begins to connect; completes with the client's number.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn connect<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    connection: JByteArray<'local>,
) -> jlong {
    env.with_env(|env| {
        let connection = serde_json::from_value(read(env, &connection)?);
        Ok(hub().connect(connection.expect("the Java side writes connections")) as jlong)
    })
    .resolve::<Internal>()
}

/// Sets an operation off and answers its number.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn submit<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    client: jlong,
    operation: JByteArray<'local>,
) -> jlong {
    env.with_env(|env| Ok(hub().submit(client as u64, &read(env, &operation)?) as jlong))
        .resolve::<Internal>()
}

/// Gives an operation up. It still completes, as it would have or as cancelled.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn abort<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>, operation: jlong) {
    env.with_env(|_| {
        hub().abort(operation as u64);
        Ok(())
    })
    .resolve::<Internal>();
}

/// Waits for news: the one native that waits, and only ever called by the one thread that is there for it.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn drain<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>) -> JByteArray<'local> {
    env.with_env(|env| {
        let news = hub().drain();
        let array = env.byte_array_from_slice(&news);
        if array.is_err() {
            // There was no memory for it. What was granted would be held by nobody.
            hub().keep(news);
        }
        array
    })
    .resolve::<Internal>()
}

/// Whether a guard may be relied on at this very moment.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn is_held<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    client: jlong,
    guard: jlong,
) -> jboolean {
    env.with_env(|_| Ok(hub().client(client as u64).is_held(guard as u64))).resolve::<Internal>()
}

/// For how many milliseconds a guard may be relied on.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn remaining<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    client: jlong,
    guard: jlong,
) -> jdouble {
    env.with_env(|_| Ok(hub().client(client as u64).remaining(guard as u64))).resolve::<Internal>()
}

/// Why a guard may not be relied on; null if it may.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn check<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    client: jlong,
    guard: jlong,
) -> JByteArray<'local> {
    env.with_env(|env| match hub().client(client as u64).check(guard as u64) {
        Ok(()) => Ok(JByteArray::default()),
        Err(error) => written(env, &json!(error)),
    })
    .resolve::<Internal>()
}

/// Gives a guard back without waiting, for a collector of forgotten ones.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn forget<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    client: jlong,
    guard: jlong,
) {
    env.with_env(|_| {
        if let Some(client) = hub().any_client(client as u64) {
            client.forget(guard as u64);
        }
        Ok(())
    })
    .resolve::<Internal>();
}

/// Takes a grant back that reached nobody, as if it had not been asked for.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn decline<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    client: jlong,
    guard: jlong,
) {
    env.with_env(|_| {
        hub().client(client as u64).decline(guard as u64);
        Ok(())
    })
    .resolve::<Internal>();
}

/// Opens a scope and answers its number.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn open_scope<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    client: jlong,
) -> jlong {
    env.with_env(|_| Ok(hub().client(client as u64).open_scope() as jlong)).resolve::<Internal>()
}

/// Closes a scope.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn close_scope<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    client: jlong,
    scope: jlong,
) {
    env.with_env(|_| {
        if let Some(client) = hub().any_client(client as u64) {
            client.close_scope(scope as u64);
        }
        Ok(())
    })
    .resolve::<Internal>();
}

/// The numbers of operations, guards and locks that a client carries.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn load<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    client: jlong,
) -> JByteArray<'local> {
    env.with_env(|env| written(env, &hub().load(client as u64))).resolve::<Internal>()
}

/// The abilities of a client's store, and the failures that it survives.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn guarantees<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    client: jlong,
) -> JByteArray<'local> {
    env.with_env(|env| {
        let guarantees = json!(hub().client(client as u64).client().guarantees());
        written(env, &guarantees)
    })
    .resolve::<Internal>()
}

/// The table of options.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn table<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>) -> JByteArray<'local> {
    env.with_env(|env| written(env, &json!(TABLE))).resolve::<Internal>()
}

/// A value from its JSON; null for what is none.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn parse<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    json: JByteArray<'local>,
) -> JByteArray<'local> {
    env.with_env(|env| {
        let json = env.convert_byte_array(&json)?;
        written(env, &serde_json::from_slice(&json).unwrap_or_default())
    })
    .resolve::<Internal>()
}

/// Forgets a client, with all it has.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn drop<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>, client: jlong) {
    env.with_env(|_| {
        hub().drop(client as u64);
        Ok(())
    })
    .resolve::<Internal>();
}

/// The JVM has begun to end.
#[jni_mangle("io.github.fencelock.Natives")]
pub fn leave<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>) {
    env.with_env(|_| {
        hub().leave();
        Ok(())
    })
    .resolve::<Internal>();
}
