package sparkherd.json;

import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.util.JsonParserDelegate;
import java.io.IOException;

/** A text while it is read: when it is closed, it knows whether it was one object and nothing behind it. */
final class WholeObject extends JsonParserDelegate {
    private boolean isWhole;

    WholeObject(JsonParser parser) {
        super(parser);
    }

    boolean isWhole() {
        return isWhole;
    }

    @Override
    public void close() throws IOException {
        try {
            isWhole = delegate.currentToken() == JsonToken.END_OBJECT && delegate.nextToken() == null;
        } catch (JsonProcessingException behind) {
            isWhole = false;
        } finally {
            super.close();
        }
    }

    /**
     * Nowhere: from bytes whose place it knows Spark copies what is no text, but is to be one, as it stands;
     * from characters, as `from_json` has them, it writes it anew.
     */
    @Override
    public JsonLocation currentTokenLocation() {
        return JsonLocation.NA;
    }

    @Override
    @Deprecated
    public JsonLocation getTokenLocation() {
        return JsonLocation.NA;
    }
}
