import azkaban.ServiceProvider;
import azkaban.jobtype.JobTypeManager;
import azkaban.jobtype.JobTypePluginSet;
import azkaban.project.FlowLoaderUtils;
import azkaban.project.FlowTrigger;
import azkaban.utils.Props;
import com.google.inject.Guice;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.log4j.BasicConfigurator;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.codehaus.jackson.JsonGenerator;
import org.codehaus.jackson.map.ObjectMapper;

/**
 * Azkaban's executor without web server and database: a request a line on stdin, an event a line on stdout, both JSON.
 *
 * <p>Requests: {@code {"do": "load" | "store" | "plugins" | "trigger" | "flow" | "cancel", ...}}. The end of stdin
 * cancels what runs.
 */
public final class AzkabanServer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<Integer, FlowRun> FLOWS = new ConcurrentHashMap<>();
  private static PrintStream events;

  public static void main(final String[] arguments) throws Exception {
    events = new PrintStream(System.out, true, "UTF-8");
    System.setOut(System.err);
    BasicConfigurator.configure();
    Logger.getRootLogger().setLevel(Level.WARN);
    JSON.configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true); // half of a surrogate pair has no UTF-8
    ServiceProvider.SERVICE_PROVIDER.setInjector(Guice.createInjector());
    final BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      final Map<String, Object> request = JSON.readValue(line, Map.class);
      try {
        answer(request);
      } catch (final Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
          cause = cause.getCause();
        }
        say("error", "execid", request.get("execid"), "message", error.toString(), "cause", cause.toString());
      }
    }
    for (final FlowRun flow : FLOWS.values()) {
      flow.cancel();
    }
  }

  private static void answer(final Map<String, Object> request) throws Exception {
    switch ((String) request.get("do")) {
      case "load": // a properties file, read by Azkaban's class
        say("values", "values", new Props(null, new File((String) request.get("file"))).getFlattened());
        break;
      case "store": // written the way a job's properties reach its process
        new Props(null, (Map<String, String>) request.get("values"))
            .storeFlattened(new File((String) request.get("file")));
        say("stored");
        break;
      case "plugins":
        final JobTypePluginSet plugins = load(request).getJobTypePluginSet();
        say("plugins", "names", Arrays.stream(new File((String) request.get("plugins")).list())
            .filter(name -> plugins.getPluginClass(name) != null).sorted().toArray());
        break;
      case "trigger": // of a Flow 2.0 file
        final FlowTrigger trigger = FlowLoaderUtils.getFlowTriggerFromYamlFile(new File((String) request.get("file")));
        say("trigger", "cron", trigger == null ? null : trigger.getSchedule().getCronExpression());
        break;
      case "flow":
        final FlowRun flow = new FlowRun(request, load(request));
        FLOWS.put((Integer) request.get("execid"), flow);
        new Thread(flow).start();
        break;
      case "cancel":
        final FlowRun cancelled = FLOWS.get(request.get("execid"));
        new Thread(cancelled::cancel).start(); // it returns when the process has ended
        break;
      default:
        throw new IllegalArgumentException("no such request: " + request.get("do"));
    }
  }

  private static JobTypeManager load(final Map<String, Object> request) {
    return new JobTypeManager((String) request.get("plugins"), new Props(), AzkabanServer.class.getClassLoader());
  }

  /** Write an event: its name, then keys and values in turn. */
  static synchronized void say(final String event, final Object... pairs) {
    final Map<String, Object> said = new LinkedHashMap<>();
    said.put("event", event);
    for (int i = 0; i < pairs.length; i += 2) {
      said.put((String) pairs[i], pairs[i + 1]);
    }
    try {
      events.println(JSON.writeValueAsString(said));
    } catch (final java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }
}
