# needs: python3
# prints: child said hi
# prints: squares [0, 1, 4, 9]
# prints: rows 3
# prints: threads 45
# prints: shared 5
python3 - <<'END'
import multiprocessing as mp, sqlite3, subprocess, threading
from multiprocessing import shared_memory

def square(x): return x * x

if __name__ == '__main__':
    print(subprocess.run(['sh', '-c', 'echo child said hi'], capture_output=True, text=True, check=True).stdout, end='')
    with mp.get_context('fork').Pool(3) as pool:
        print('squares', pool.map(square, range(4)))
    db = sqlite3.connect('t.db')
    db.execute('pragma journal_mode=wal')
    db.execute('create table t(x)')
    db.executemany('insert into t values (?)', [(i,) for i in range(3)])
    db.commit()
    print('rows', db.execute('select count(*) from t').fetchone()[0])
    done = []
    threads = [threading.Thread(target=done.append, args=(i,)) for i in range(10)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print('threads', sum(done))
    m = shared_memory.SharedMemory(create=True, size=16)
    m.buf[0] = 5
    again = shared_memory.SharedMemory(name=m.name)
    print('shared', again.buf[0])
    again.close(); m.close(); m.unlink()
END
