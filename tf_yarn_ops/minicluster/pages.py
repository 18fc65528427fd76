"""The start pages of NameNode and DataNode, because Hadoop's jars on Maven do not contain Hadoop's own pages."""

#: Files that the HDFS daemons look for on their class path, by their paths.
FILES = {
    "webapps/hdfs/index.html": """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>NameNode of the minicluster</title></head>
<body style="font-family: sans-serif; max-width: 40em; margin: 3em auto">
<h1>NameNode of the minicluster</h1>
<ul>
<li><a href="/webhdfs/v1/?op=LISTSTATUS">Files</a> (WebHDFS, the root folder)</li>
<li><a href="/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState">State of the file system</a></li>
<li><a href="/jmx">Measurements</a>, <a href="/conf">configuration</a>, <a href="/stacks">threads</a></li>
</ul>
</body>
</html>
""",
    "webapps/datanode/index.html": """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>DataNode of the minicluster</title></head>
<body><a href="/jmx">Measurements</a>, <a href="/conf">configuration</a>, <a href="/stacks">threads</a></body>
</html>
""",
}
