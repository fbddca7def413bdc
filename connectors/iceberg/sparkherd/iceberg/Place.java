package sparkherd.iceberg;

/**
 * Where a commit is to go: right after `head` (`NONE`: nothing was written yet) of `branch`, with `tag` put there, too.
 * As text, `HEAD:BRANCH:TAG`; none of them has a colon.
 */
record Place(String head, String branch, String tag) {
    static final String NONE = "none";

    static Place of(String text) {
        String[] parts = text.split(":", -1);
        if (parts.length != 3) {
            throw new IllegalArgumentException("no place of a commit: " + text);
        }
        return new Place(parts[0], parts[1], parts[2]);
    }

    @Override
    public String toString() {
        return branch + " at " + head;
    }
}
