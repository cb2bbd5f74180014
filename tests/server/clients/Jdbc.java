// pgjdbc: metadata, plain and prepared statements, portals with a fetch size, cancelling.
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.*;
import java.util.*;

public class Jdbc {
    static String told(String key) {
        return System.getenv("SESSION_" + key.toUpperCase());
    }

    static List<List<String>> rows(ResultSet found) throws SQLException {
        List<List<String>> rows = new ArrayList<>();
        int width = found.getMetaData().getColumnCount();
        while (found.next()) {
            List<String> row = new ArrayList<>();
            for (int place = 1; place <= width; place++) row.add(found.getString(place));
            rows.add(row);
        }
        return rows;
    }

    static String json(Object value) {
        if (value instanceof Collection<?> many) {
            StringJoiner all = new StringJoiner(", ", "[", "]");
            for (Object each : many) all.add(json(each));
            return all.toString();
        }
        return "\"" + value + "\"";
    }

    public static void main(String[] arguments) throws Exception {
        Properties own = new Properties();
        own.setProperty("user", told("user"));
        own.setProperty("password", told("password"));
        own.setProperty("options", "-c discreet.epsilon=0.25");
        if (arguments.length > 0) own.setProperty("preferQueryMode", arguments[0]);
        String address = "jdbc:postgresql://" + told("host") + ":" + told("port") + "/town";
        Map<String, Object> seen = new LinkedHashMap<>();
        try (Connection connection = DriverManager.getConnection(address, own)) {
            DatabaseMetaData about = connection.getMetaData();
            List<String> tables = new ArrayList<>();
            ResultSet found = about.getTables(null, "public", "%", new String[] {"TABLE"});
            while (found.next()) tables.add(found.getString("TABLE_NAME"));
            seen.put("tables", tables);
            for (ResultSet each : List.of(about.getColumns(null, "public", "people", "%"),
                    about.getPrimaryKeys(null, "public", "people"), about.getIndexInfo(null, "public", "people", false, true),
                    about.getImportedKeys(null, "public", "people"), about.getExportedKeys(null, "public", "people"),
                    about.getTypeInfo(), about.getSchemas(), about.getCatalogs(), about.getTableTypes(),
                    about.getProcedures(null, null, "%"), about.getFunctions(null, "public", "%"),
                    about.getTablePrivileges(null, "public", "people"), about.getBestRowIdentifier(null, "public", "people", 0, true)))
                rows(each);
            about.getSQLKeywords();
            Statement plain = connection.createStatement();
            seen.put("first", rows(plain.executeQuery(told("groups"))));
            ResultSetMetaData columns = plain.executeQuery(told("groups")).getMetaData();
            columns.isNullable(1);
            columns.isAutoIncrement(1);
            seen.put("again", rows(plain.executeQuery(told("groups"))));
            PreparedStatement prepared = connection.prepareStatement(told("bound").replace("$1", "?"));
            for (int times = 0; times < 7; times++) {  // named on the server from the fifth on
                prepared.setInt(1, Integer.parseInt(told("value")));
                seen.put("bound", rows(prepared.executeQuery()));
            }
            connection.setAutoCommit(false);
            plain.setFetchSize(1);
            seen.put("paged", rows(plain.executeQuery(told("groups"))));
            connection.commit();
            connection.setAutoCommit(true);
            try {
                plain.executeQuery(told("rows"));
            } catch (SQLException error) {
                seen.put("refused", error.getSQLState());
            }
            Thread canceller = new Thread(() -> {
                try {
                    long end = System.currentTimeMillis() + 60_000;
                    while (!Files.exists(Path.of(told("begun"))) && System.currentTimeMillis() < end) Thread.sleep(10);
                    plain.cancel();
                } catch (Exception error) {
                    throw new RuntimeException(error);
                }
            });
            canceller.start();
            try {
                plain.executeQuery(told("slow"));
            } catch (SQLException error) {
                seen.put("cancelled", error.getSQLState());
            }
            canceller.join();
            seen.put("after", rows(plain.executeQuery(told("slow"))));
        }
        StringJoiner all = new StringJoiner(", ", "{", "}");
        seen.forEach((name, value) -> all.add("\"" + name + "\": " + json(value)));
        System.out.print(all);
    }
}
