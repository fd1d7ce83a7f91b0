# A repository as a person has it, with a change that is not committed.
export HGRCPATH= HGUSER=person
hg init w
cd w
mkdir app
echo 1 >a
hg commit -q -A -m one
echo 2 >>a
