package io.github.fencelock;

/** The reason no run of a job was started. */
public enum Reason {
    /** The last run is in progress. */
    RUNNING("running"),
    /** The instant that is due was run, or its run has died and is not run again. */
    DONE("done"),
    /**
     * The last run started less than half a period ago, or less than its {@code atLeastFor}, or it was for a later instant.
     */
    NOT_DUE("not_due");

    private final String word;

    Reason(String word) {
        this.word = word;
    }

    /** The word, the same in every language: {@code running}, {@code done} or {@code not_due}. */
    public String word() {
        return word;
    }

    static Reason of(Object word) {
        return "running".equals(word) ? RUNNING : "done".equals(word) ? DONE : NOT_DUE;
    }
}
