import com.google.gson.JsonObject;

/** A lock library, as the actor uses it. */
interface Library {
    /** Takes a lock within so many milliseconds; null if it was not granted by then. */
    Held take(String name, long wait, JsonObject options) throws Exception;

    /** A lock that the library holds, behind a guard. */
    interface Held {
        /** In the words of the protocol, what the release found. */
        String release() throws Exception;
    }
}
