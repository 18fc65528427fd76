import azkaban.executor.ExecutableNode;
import azkaban.executor.Status;
import azkaban.jobExecutor.Job;
import azkaban.utils.Props;
import java.io.File;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.commons.io.FileUtils;
import org.apache.log4j.EnhancedPatternLayout;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.apache.log4j.RollingFileAppender;

/** One attempt of a job, with the properties, the log and the statuses of Azkaban's JobRunner. */
final class JobRun {
  private static final String LAYOUT = "%d{dd-MM-yyyy HH:mm:ss z} %c{1} %p - %m\n";

  private final FlowRun flow;
  private final ExecutableNode node;
  private final File directory;
  private final Logger logger;
  private Job job;
  private boolean killed;

  JobRun(final FlowRun flow, final ExecutableNode node) {
    this.flow = flow;
    this.node = node;
    this.directory = new File(flow.directory, node.getJobSource()).getParentFile();
    this.logger = Logger.getLogger(System.nanoTime() + "." + execution() + "." + node.getId());
  }

  void run() throws IOException {
    final File log = new File(this.directory, name("log"));
    final RollingFileAppender appender =
        new RollingFileAppender(new EnhancedPatternLayout(LAYOUT), log.getAbsolutePath(), true);
    appender.setMaxFileSize("5MB");
    appender.setMaxBackupIndex(4);
    this.logger.setLevel(Level.INFO);
    this.logger.addAppender(appender);
    this.logger.setAdditivity(false);
    delay();
    if (prepare(log)) {
      runJob();
    }
    if (this.killed) {
      this.node.setStatus(Status.KILLED);
    }
    this.logger.info("Finishing job " + this.node.getId() + " with status " + this.node.getStatus());
    this.logger.removeAppender(appender);
    appender.close();
    final File kept = new File((String) this.flow.request.get("logs"), name("log"));
    FileUtils.copyFile(log, kept); // Azkaban uploads it into its database
    final Map<String, String> outputs = new HashMap<>();
    if (this.node.getOutputProps() != null) {
      outputs.putAll(this.node.getOutputProps().getFlattened());
    }
    AzkabanServer.say("finished", "execid", execution(), "job", this.node.getId(), "attempt", this.node.getAttempt(),
        "status", this.node.getStatus().toString(), "outputs", outputs, "log", kept.getPath());
  }

  synchronized void kill() {
    if (Status.isStatusFinished(this.node.getStatus())) {
      return;
    }
    this.logger.error("Kill has been called.");
    this.killed = true;
    this.notifyAll();
    try {
      if (this.job != null) {
        this.job.cancel();
      }
    } catch (final Exception error) {
      this.logger.error("Failed trying to cancel job.", error);
    }
  }

  private synchronized void delay() {
    final long end = System.currentTimeMillis() + this.node.getDelayedExecution();
    try {
      while (!this.killed && System.currentTimeMillis() < end) {
        this.wait(Math.max(1, end - System.currentTimeMillis()));
      }
    } catch (final InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  private synchronized boolean prepare(final File log) {
    if (this.killed) {
      return false;
    }
    final Props props = this.node.getInputProps();
    addRuntimeProperties(props, log);
    this.node.setStatus(Status.RUNNING);
    AzkabanServer.say("started", "execid", execution(), "job", this.node.getId(), "attempt", this.node.getAttempt(),
        "log", log.getAbsolutePath(), "directory", this.directory.getAbsolutePath());
    try {
      this.job = this.flow.jobTypes.buildJobExecutor(this.node.getId(), props, this.logger);
      return true;
    } catch (final Exception error) {
      this.logger.error("Failed to build job type", error);
      this.node.setStatus(Status.FAILED);
      return false;
    }
  }

  /** What JobRunner puts last, over whatever stands there; its later releases add the last two. */
  private void addRuntimeProperties(final Props props, final File log) {
    final String url = (String) this.flow.request.get("url");
    if (url != null) {
      props.put("azkaban.url", url);
      props.put("azkaban.link.execution.url", url + "/executor?execid=" + execution());
      props.put("azkaban.link.attempt.url", String.format("%s/executor?execid=%d&job=%s&attempt=%d", url, execution(),
          this.node.getId(), this.node.getAttempt()));
    }
    props.put("azkaban.job.outnodes", String.join(",", this.node.getOutNodes()));
    props.put("azkaban.job.innodes", String.join(",", this.node.getInNodes()));
    props.put("jvm.args", String.format("-Dazkaban.flowid=%s -Dazkaban.execid=%s -Dazkaban.jobid=%s",
        this.node.getParentFlow().getFlowId(), execution(), this.node.getId()));
    props.put("azkaban.job.id", this.node.getId());
    props.put("azkaban.job.attempt", this.node.getAttempt());
    props.put("azkaban.job.metadata.file", name("meta"));
    props.put("azkaban.job.attachment.file", new File(this.directory, name("attach")).getAbsolutePath());
    if (!props.containsKey("working.dir")) {
      props.put("working.dir", this.directory.getAbsolutePath());
    }
    if (!props.containsKey("user.to.proxy")) {
      props.put("user.to.proxy", this.node.getExecutableFlow().getSubmitUser());
    }
    if (Boolean.TRUE.equals(this.flow.request.get("newer"))) {
      props.put("azkaban.job.log.file", log.getAbsolutePath());
      props.put("azkaban.webserverhost", String.valueOf(java.net.URI.create(url).getHost()));
    }
  }

  private void runJob() {
    Status status = Status.SUCCEEDED;
    try {
      this.job.run();
    } catch (final Throwable error) {
      this.logger.error("Job run failed!", error);
      status = this.node.getInputProps().getBoolean("job.succeed.on.failure", false) ? Status.FAILED_SUCCEEDED
          : Status.FAILED;
    }
    try {
      this.node.setOutputProps(this.job.getJobGeneratedProperties());
    } catch (final Exception error) {
      this.logger.error("no output properties", error);
    }
    synchronized (this) {
      this.node.setStatus(status);
    }
  }

  private int execution() {
    return this.node.getExecutableFlow().getExecutionId();
  }

  private String name(final String suffix) {
    final String attempt = this.node.getAttempt() > 0 ? this.node.getAttempt() + "." : "";
    return "_job." + execution() + "." + attempt + this.node.getId() + "." + suffix;
  }
}
