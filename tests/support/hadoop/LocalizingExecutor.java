// Hadoop's executor of container-executor, which localizes in the NodeManager, as the default one does. Hadoop's own starts
// a JVM for that with each application.

package tf_yarn_ops.minicluster;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.yarn.factory.providers.RecordFactoryProvider;
import org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor;
import org.apache.hadoop.yarn.server.nodemanager.containermanager.linux.privileged.PrivilegedOperation;
import org.apache.hadoop.yarn.server.nodemanager.containermanager.linux.privileged.PrivilegedOperationException;
import org.apache.hadoop.yarn.server.nodemanager.containermanager.localizer.ContainerLocalizer;
import org.apache.hadoop.yarn.server.nodemanager.executor.LocalizerStartContext;

public class LocalizingExecutor extends LinuxContainerExecutor {
  @Override
  public void startLocalizer(LocalizerStartContext job) throws IOException, InterruptedException {
    List<String> folders = job.getDirsHandler().getLocalDirs();
    Path tokens = job.getNmPrivateContainerTokens();
    PrivilegedOperation initialize = new PrivilegedOperation(PrivilegedOperation.OperationType.INITIALIZE_CONTAINER);
    initialize.appendArgs(
        job.getUser(),
        job.getUser(),
        Integer.toString(PrivilegedOperation.RunAsUserCommand.INITIALIZE_CONTAINER.getValue()),
        job.getAppId(),
        job.getLocId(),
        tokens.toUri().getPath(),
        String.join("%", folders),
        String.join("%", job.getDirsHandler().getLogDirs()),
        "/bin/true"); // in place of the JVM
    try {
      getPrivilegedOperationExecutor().executePrivilegedOperation(initialize, false);
    } catch (PrivilegedOperationException error) {
      throw new IOException("container-executor made no folders of " + job.getAppId() + ": " + error.getOutput(), error);
    }
    List<Path> paths = new ArrayList<>();
    for (String folder : folders) {
      paths.add(new Path(folder));
    }
    FileContext files = FileContext.getLocalFSFileContext(getConf());
    files.setWorkingDirectory(new Path(folders.get(0), "usercache/" + job.getUser() + "/appcache/" + job.getAppId()));
    new ContainerLocalizer(
            files, job.getUser(), job.getAppId(), job.getLocId(), tokens.getName(), paths,
            RecordFactoryProvider.getRecordFactory(getConf()))
        .runLocalization(job.getNmAddr());
  }
}
