# Written by docs/tables.py from the names that this package loads when they are used.
from .cleanup import TensorFlowYarnCleanupOperator as TensorFlowYarnCleanupOperator
from .decorator import tf_yarn_cmd_task as tf_yarn_cmd_task
from .decorator import tf_yarn_task as tf_yarn_task
from .exceptions import TfYarnInfrastructureError as TfYarnInfrastructureError
from .exceptions import TfYarnJobFailed as TfYarnJobFailed
from .hook import YarnHook as YarnHook
from .links import TensorBoardLink as TensorBoardLink
from .links import TrainingLink as TrainingLink
from .links import YarnApplicationLink as YarnApplicationLink
from .links import YarnLogsLink as YarnLogsLink
from .operator import TensorFlowYarnOperator as TensorFlowYarnOperator
from .retry_policy import TfYarnRetryPolicy as TfYarnRetryPolicy
from .sensor import TensorFlowYarnSensor as TensorFlowYarnSensor
from .trigger import TensorFlowYarnTrigger as TensorFlowYarnTrigger
