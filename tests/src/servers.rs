//! Real servers, started on free ports and stopped by pid.
