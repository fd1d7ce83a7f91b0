# needs: bash mkdir rm find python3
# prints: made: 100 directories
# prints: kept: text
# prints: removed by rm
# prints: removed by Python
# A tree deeper than PATH_MAX.
top=$PWD name=$(printf 'd%.0s' {1..100})
down() { for i in {1..100}; do mkdir $name && cd $name; done; }
down
echo text >f && cp f g && mv g h && chmod 600 h && ln -s h l
cd "$top" && echo "made: $(find $name -type d | wc -l) directories"
cd $name && for i in {2..100}; do cd $name; done && echo "kept: $(cat l)"
cd "$top" && rm -rf $name && [ ! -e $name ] && echo removed by rm
down && : >f && cd "$top"
python3 -c 'import shutil, sys; shutil.rmtree(sys.argv[1])' $name && [ ! -e $name ] && echo removed by Python
