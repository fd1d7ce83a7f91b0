# needs: python3
# heavy
# prints: in the venv: hello from the package
# prints: by --user: hello from the package
# prints: in HOME: yes
# A package of the workspace's, installed into a venv, and for the user, whose HOME is the run's own.
mkdir pkg
cat >pkg/pyproject.toml <<'END'
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "hello-pkg"
version = "1.0"
END
cat >pkg/backend.py <<'END'
import os, zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "hello_pkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as z:
        z.writestr("hello_pkg/__init__.py", "def main(): print('hello from the package')\n")
        z.writestr("hello_pkg-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hello-pkg\nVersion: 1.0\n")
        z.writestr("hello_pkg-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("hello_pkg-1.0.dist-info/entry_points.txt", "[console_scripts]\nhello-pkg = hello_pkg:main\n")
        z.writestr("hello_pkg-1.0.dist-info/RECORD", "")
    return name
END
install='install -q --no-index --no-build-isolation --disable-pip-version-check --no-warn-script-location'
python3 -m venv venv
venv/bin/pip $install ./pkg
echo "in the venv: $(venv/bin/hello-pkg)"
# The venv's pip, run by the Python outside of it: distributions do not always bring one.
python3 venv/lib/python3*/site-packages/pip $install --user --break-system-packages --root-user-action=ignore ./pkg
cd /
echo "by --user: $(~/.local/bin/hello-pkg)"
python3 -c 'import hello_pkg, os; print("in HOME:", "yes" if hello_pkg.__file__.startswith(os.environ["HOME"] + "/.local/") else hello_pkg.__file__)'
