import azkaban.executor.ExecutableFlow;
import azkaban.executor.ExecutableNode;
import azkaban.executor.Status;
import azkaban.flow.Flow;
import azkaban.flow.FlowProps;
import azkaban.flow.FlowUtils;
import azkaban.jobtype.JobTypeManager;
import azkaban.project.DirectoryYamlFlowLoader;
import azkaban.project.FlowLoader;
import azkaban.project.FlowLoaderFactory;
import azkaban.project.FlowLoaderUtils;
import azkaban.project.Project;
import azkaban.utils.Props;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.commons.io.FileUtils;

/** One execution of a flow, job after job, with the properties that Azkaban's FlowRunner gives to them. */
final class FlowRun implements Runnable {
  final Map<String, Object> request;
  final JobTypeManager jobTypes;
  final File directory;
  private final Map<String, Props> shared = new HashMap<>();
  private final boolean yaml;
  private final ExecutableFlow flow;
  private Props flowProps;
  private volatile JobRun running;
  private volatile boolean killed;

  FlowRun(final Map<String, Object> request, final JobTypeManager jobTypes) throws Exception {
    this.request = request;
    this.jobTypes = jobTypes;
    this.directory = new File((String) request.get("directory"));
    final Project project = new Project(1, (String) request.get("project"));
    project.setVersion(1);
    project.setLastModifiedUser("ann");
    project.setLastModifiedTimestamp(0);
    final FlowLoader loader = new FlowLoaderFactory(new Props()).createFlowLoader(this.directory);
    loader.loadProjectFlow(project, this.directory);
    if (!loader.getErrors().isEmpty()) {
      throw new IllegalArgumentException("the project can't be uploaded: " + loader.getErrors());
    }
    this.yaml = loader instanceof DirectoryYamlFlowLoader;
    project.setFlows(loader.getFlowMap());
    this.flow = new ExecutableFlow(project, (Flow) loader.getFlowMap().get(request.get("flow")));
    this.flow.setExecutionId((Integer) request.get("execid"));
    this.flow.setSubmitUser("ann");
  }

  @Override
  public void run() {
    Status status = Status.FAILED;
    try {
      loadProperties();
      status = runJobs();
    } catch (final Throwable error) {
      error.printStackTrace();
    } finally {
      FileUtils.deleteQuietly(this.directory); // Azkaban does so the moment the flow ends
      AzkabanServer.say("over", "execid", this.flow.getExecutionId(), "status", status.toString());
    }
  }

  synchronized void cancel() {
    this.killed = true;
    if (this.running != null) {
      this.running.kill();
    }
  }

  private void loadProperties() throws IOException {
    final Props common = FlowUtils.addCommonFlowProperties(null, this.flow);
    this.flowProps = common;
    if (this.yaml) {
      this.flowProps = FlowLoaderUtils.getPropsFromYamlFile(this.flow.getId(), yamlFile());
      this.flowProps.setParent(common);
    } else {
      for (final FlowProps each : this.flow.getFlowProps()) {
        this.shared.put(each.getSource(), new Props(null, new File(this.directory, each.getSource())));
      }
      for (final FlowProps each : this.flow.getFlowProps()) {
        this.shared.get(each.getSource()).setParent(this.shared.get(each.getInheritedSource()));
      }
    }
    this.flowProps = new Props(this.flowProps, (Map<String, String>) this.request.get("parameters"));
  }

  private Status runJobs() throws Exception {
    final Collection<ExecutableNode> waiting = new ArrayList<>(this.flow.getExecutableNodes());
    boolean failed = false;
    while (!waiting.isEmpty()) {
      final ExecutableNode node = waiting.stream().filter(this::isReady).findFirst().get();
      waiting.remove(node);
      if (failed || this.killed) {
        node.setStatus(Status.CANCELLED);
        continue;
      }
      failed = runWithRetries(node) == Status.FAILED;
    }
    return this.killed ? Status.KILLED : failed || anyCancelled() ? Status.FAILED : Status.SUCCEEDED;
  }

  private boolean anyCancelled() {
    return this.flow.getExecutableNodes().stream().anyMatch(node -> node.getStatus() == Status.CANCELLED);
  }

  private boolean isReady(final ExecutableNode node) {
    return node.getInNodes().stream()
        .allMatch(name -> Status.isStatusFinished(this.flow.getExecutableNode(name).getStatus()));
  }

  /** As FlowRunner.retryJobIfPossible: a failed job comes again with a higher attempt, a killed one does not. */
  private Status runWithRetries(final ExecutableNode node) throws Exception {
    while (true) {
      node.setInputProps(collectProperties(node));
      final JobRun run = new JobRun(this, node);
      synchronized (this) {
        this.running = run;
        if (this.killed) {
          run.kill();
        }
      }
      run.run();
      if (node.getStatus() != Status.FAILED || node.getRetries() <= node.getAttempt()) {
        return node.getStatus();
      }
      node.setDelayedExecution(node.getRetryBackoff());
      node.resetForRetry();
    }
  }

  /** As FlowRunner.prepareJobProperties: shared files, below the flow's, below upstream outputs, below the job's. */
  private Props collectProperties(final ExecutableNode node) throws IOException {
    Props props = Props.clone(this.flowProps);
    if (!this.yaml && node.getPropsSource() != null) {
      props.setEarliestAncestor(Props.clone(this.shared.get(node.getPropsSource())));
    }
    for (final String upstream : node.getInNodes()) {
      if (this.flow.getExecutableNode(upstream).getOutputProps() != null) {
        final Props outputs = Props.clone(this.flow.getExecutableNode(upstream).getOutputProps());
        outputs.setEarliestAncestor(props);
        props = outputs;
      }
    }
    final String path = this.flow.getId() + ":" + node.getId();
    final Props own = this.yaml ? FlowLoaderUtils.getPropsFromYamlFile(path, yamlFile())
        : new Props(null, new File(this.directory, node.getJobSource()));
    own.setParent(props);
    own.put("azkaban.memory.check", Boolean.toString(true));
    return own;
  }

  private File yamlFile() {
    final List<FlowProps> sources = new ArrayList<>(this.flow.getFlowProps());
    return new File(this.directory, sources.get(0).getSource());
  }
}
