/** Distributed locks with a fencing token on every grant, for Java. */
module io.github.fencelock {
    exports io.github.fencelock;
}
