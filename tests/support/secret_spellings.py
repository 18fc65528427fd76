"""Sixty ways to write a secret into a command, an option or a line of a log; ``{s}`` stands for it, or for its core."""

import json
from dataclasses import dataclass

#: The whole secret, where the core is only a part of it.
WHOLE = {
    "concatenated quotes": "ab{s}cd",
    "escaped blank": "x {s}",
    "cookie": "a=b; session={s}",
    "URL, password with @": "p@{s}",
    "URL, password with a slash": "p/{s}",
    "URL with a token": "{s}0123456789abcdef",
}
SPELLINGS = {
    # Options of programs.
    "option with =": "train --api-key={s}",
    "option with a blank": "train --db_password {s}",
    "option, single quotes": "train --password '{s}'",
    "option, double quotes": 'train --password "{s}"',
    "option with one dash": "java -password {s}",
    "option on a continued line": "train --password \\\n  {s}",
    "option of a quoted list": "run --options '--secret-key={s} --steps=3'",
    "option --pw": "train --pw {s}",
    "option --passwd": "train --passwd {s}",
    "option --pass": "openssl --pass {s}",
    "option --pwd": "train --pwd={s}",
    "option --apikey": "train --apikey {s}",
    "option --auth": "train --auth {s}",
    "option --credentials": "train --credentials {s}",
    "option --creds": "train --creds={s}",
    "option --passphrase": "gpg --passphrase {s}",
    "option --bearer": "call --bearer {s}",
    "option --jwt": "call --jwt {s}",
    "option --access-token": "train --access-token {s}",
    "option --client-secret": "az login --client-secret {s}",
    "option --hf_token": "train --hf_token {s}",
    "concatenated quotes": "train --password 'ab{s}'\"cd\"",
    "escaped blank": "train --password x\\ {s}",
    "user and password of curl": "curl -u ann:{s} https://h/x",
    "user and password of curl, long": "curl --user 'ann:{s}' https://h/x",
    "sshpass": "sshpass -p {s} ssh h",
    # Variables.
    "variable": "API_TOKEN={s} exec train",
    "exported variable": "export DB_PASSWORD='{s}'; train",
    "PGPASSWORD": "PGPASSWORD={s} psql",
    "MYSQL_PWD": "MYSQL_PWD={s} mysql",
    "variable in camel case": "dbPass={s} train",
    "AWS key": "AWS_SECRET_ACCESS_KEY={s} aws s3 ls",
    "property of Hadoop": "hadoop fs -D fs.s3a.secret.key={s} -ls /",
    "property of Java": "java -Djavax.net.ssl.trustStorePassword={s} T",
    "property with a dot": "spark --conf spring.datasource.password={s}",
    "INI": "password = {s}",
    "YAML": "db_password: {s}",
    # JSON.
    "JSON": """train '{"api_key": "{s}", "steps": 3}'""",
    "JSON without blanks": """train '{"api_key":"{s}","steps":3}'""",
    "JSON, blank before the colon": """train '{"api_key" : "{s}"}'""",
    "JSON in escaped quotes": '''train --conf "{\\"password\\": \\"{s}\\"}"''',
    "JSON in doubly escaped quotes": '''train --conf "{\\\\\\"password\\\\\\" :\\\\\\"{s}\\\\\\"}"''',
    "JSON on several lines": 'x {\n  "token":\n    "{s}"\n}',
    "JSON, camel case": '{"clientSecret":"{s}"}',
    "JSON that a log cuts off": 'read "db_password": "{s}',
    "dictionary of Python": "{'password': '{s}', 'n': 1}",
    "Ruby": "{'password' => '{s}'}",
    # Headers.
    "header": "curl -H 'X-Api-Key: {s}' http://h",
    "header without a blank": 'curl -H "X-Api-Key:{s}" http://h',
    "Authorization": "curl -H 'Authorization: Bearer {s}' http://h",
    "Authorization of JSON": '{"Authorization": "Basic {s}"}',
    "Authorization of JSON, escaped": '"{\\"authorization\\": \\"Bearer {s}\\"}"',
    "Proxy-Authorization": "curl -H 'Proxy-Authorization: Basic {s}' http://h",
    "Bearer alone": "got Bearer {s} from h",
    "cookie": "curl -H 'Cookie: a=b; session={s}' http://h",
    # URLs.
    "URL": "load s3://ann:{s}@host/data",
    "URL without a user": "redis://:{s}@host:6379/0",
    "URL, password with @": "load postgres://ann:p@{s}@host/db",
    "URL, password with a slash": "load postgres://ann:p/{s}@host/db",
    "URL, several hosts": "mongodb://ann:{s}@h1:27017,h2:27017/db",
    "URL with a token": "git clone https://{s}0123456789abcdef@github.com/x/y",
    "query of a URL": "fetch 'https://host/x?X-Amz-Signature={s}&part=1'",
    "JDBC": "jdbc:mysql://h/db?user=u&password={s}",
    "JDBC of SQL Server": "'jdbc:sqlserver://h;user=x;password={{s}};encrypt=true'",
    "JDBC of Oracle": "jdbc:oracle:thin:scott/{s}@//h:1521/x",
}


def spell_secrets(prefix="zq"):
    """Yield each way as its name, its text, the core of its secret, and the whole; no core is a part of another text."""
    for number, (name, text) in enumerate(SPELLINGS.items()):
        secret = f"{prefix}{number:03}S3cr3t"
        yield name, text.replace("{s}", secret), secret, WHOLE.get(name, "{s}").replace("{s}", secret)


@dataclass(frozen=True)
class SecretJob:
    """A job that carries every spelling in its command, its variables, its result and its log.

    Attributes
    ----------
    command : str
        Ends with exit code 4 once the file that it waits for is there.
    words : list of str
        Options of ytf-submit.
    env : dict of str to str
    """

    command: str
    words: list
    env: dict

    @staticmethod
    def found_in(texts):
        """Return the spellings whose secrets stand in texts, by the names of the texts."""
        rows = [row for prefix in ("cmd", "env", "res", "log", "end") for row in spell_secrets(prefix)]
        found = {name: [row[0] for row in rows if row[2] in text] for name, text in texts.items()}
        return {name: spellings for name, spellings in found.items() if spellings}


def job_of_secrets(folder, waits=True):
    """Return a job whose program reads what it prints from files in a folder."""

    def every(prefix):
        return "\n".join(text for _, text, _, _ in spell_secrets(prefix))

    result = {"free": every("res"), "texts": [text for _, text, _, _ in spell_secrets("res")], "loss": 0.5}
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "printed").write_text(every("log") + "\nall are printed\n")
    (folder / "end").write_text(f"failed: password={next(spell_secrets('end'))[2]}\n")
    command = (
        f"cat > /dev/null <<'END'\n{every('cmd')}\nEND\ncat {folder}/printed\n"
        f"cp {folder}/result.json $YTF_RESULT_FILE\n"
        + (f"until [ -e {folder}/go ]; do sleep 0.05; done\n" if waits else "")
        + f"cat {folder}/end; exit 4"
    )
    env = {"OPTIONS": every("env"), "CONF": json.dumps({"nested": every("env")})}
    words = ["-r", "worker:1", "--report_log_tail", "8192"]
    for name, value in env.items():
        words += ["--env", f"{name}={value}"]
    return SecretJob(command, words, env)
