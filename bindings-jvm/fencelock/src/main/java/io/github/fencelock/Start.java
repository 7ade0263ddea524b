package io.github.fencelock;

/** What {@link Job#startOrWhy} comes to: a {@link Run}, or {@link Skipped}. */
public sealed interface Start permits Run, Skipped {}
