package sparkherd.json;

import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructType;
import scala.Tuple3;
import scala.collection.immutable.$colon$colon;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/**
 * SQL's `sparkherd_json(text, schema, options)`: as `from_json`, but null for what is not one whole object.
 *
 * Every session of a Spark that has this jar has it.
 */
public final class Functions implements SparkSessionExtensionsProvider {
    private static final String NAME = "sparkherd_json";

    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        ExpressionInfo info = new ExpressionInfo(ObjectReader.class.getName(), NAME);
        extensions.injectFunction(new Tuple3<>(new FunctionIdentifier(NAME), info, Functions::made));
        return BoxedUnit.UNIT;
    }

    /** What `from_json` refuses is left to it to refuse. */
    private static Expression made(Seq<Expression> given) {
        List<Expression> each = CollectionConverters.asJava(given);
        if (each.size() != 3) {
            throw new IllegalArgumentException(NAME + " takes a text, a schema and options");
        }
        JsonToStructs spark = new JsonToStructs(each.get(0), each.get(1), each.get(2));
        if (spark.checkInputDataTypes().isFailure() || !(spark.dataType() instanceof StructType)) {
            return spark;
        }
        SQLConf conf = SQLConf.get();
        StructType schema = (StructType) spark.dataType();
        ObjectReader reader = new ObjectReader(
                schema, spark.options(), conf.sessionLocalTimeZone(), conf.columnNameOfCorruptRecord());
        Expression target = new Literal(reader, new ObjectType(ObjectReader.class));
        return new Invoke(target, "read", schema, seq(spark.child()), seq(StringType$.MODULE$), true, true, true);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static <T> Seq<T> seq(T item) {
        return new $colon$colon(item, Nil$.MODULE$);
    }
}
