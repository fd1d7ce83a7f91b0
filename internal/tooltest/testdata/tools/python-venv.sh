# needs: python3
# prints: prefix is the venv
# prints: spawned 9
python3 -m venv --without-pip venv
./venv/bin/python -c 'import sys; print("prefix is the venv" if sys.prefix.endswith("/venv") else sys.prefix)'
cat >spawn.py <<'END'
import multiprocessing as mp
def f(x): return x * x
if __name__ == '__main__':
    with mp.get_context('spawn').Pool(2) as pool:
        print('spawned', pool.map(f, [3])[0])
END
./venv/bin/python spawn.py
