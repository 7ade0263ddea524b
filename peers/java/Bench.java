/** The libraries on the bench's courses, by the name that is the first word. */
public final class Bench {
    private Bench() {}

    public static void main(String[] words) throws Exception {
        Course.Contestant contestant = switch (words[0]) {
            case "redisson" -> new RedissonContestant(Course.word(words, "url"), Course.word(words, "kind"));
            case "curator" -> new CuratorContestant(Course.word(words, "server"));
            case "jetcd" -> new JetcdContestant(Course.word(words, "server"));
            case "shedlock" -> new ShedLockContestant(Course.word(words, "jdbc"));
            case "spring-jdbc" -> new SpringJdbcContestant(Course.word(words, "jdbc"));
            default -> throw new IllegalArgumentException("there is no contestant " + words[0]);
        };
        Course.run(contestant, words, 1);
    }
}
