//! How each kind of server is found, initialised and started.
//!
//! The options that both initialising and running need keep data directories small, because every
//! start copies one.

use std::fs;
use std::path::{Path, PathBuf};

use super::Flavour;
use super::program::{Program, cached_server, find_program, run_with_input};

/// What there is to know about a kind of server on this machine.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) program: Program,
    /// Options that initialising and running must agree on.
    pub(super) format: Vec<String>,
    /// Options of a running server alone.
    pub(super) run: Vec<String>,
    initialise: fn(&Recipe, &Path) -> Result<(), String>,
}

impl Recipe {
    /// The recipe of this kind, or what is missing and how to get it.
    pub(super) fn of(flavour: Flavour) -> Result<Self, String> {
        match flavour {
            Flavour::MariaDb => mariadb(),
            Flavour::Mysql9 => mysql9(&cached_server("mysql9")),
            Flavour::Mysql56 => mysql56(&cached_server("mysql56")),
        }
    }

    /// Fills an empty folder with a data directory whose only account for people is root, without
    /// a password and by socket alone.
    pub(super) fn initialise(&self, folder: &Path) -> Result<(), String> {
        (self.initialise)(self, folder)
    }
}

fn options(list: &[&str]) -> Vec<String> {
    list.iter().map(|option| (*option).to_owned()).collect()
}

fn mariadb() -> Result<Recipe, String> {
    let program = find_mariadb("mariadbd")?;
    find_mariadb("mariadb-install-db")?;
    Ok(Recipe {
        program: Program::installed(program),
        format: options(&[
            "--innodb-log-file-size=8M",
            "--innodb-data-file-path=ibdata1:5M:autoextend",
            "--innodb-autoextend-increment=1",
        ]),
        run: options(&[
            "--innodb-temp-data-file-path=ibtmp1:3M:autoextend",
            "--aria-pagecache-buffer-size=128K",
            "--loose-innodb-buffer-pool-load-at-startup=OFF",
            "--loose-innodb-buffer-pool-dump-at-shutdown=OFF",
        ]),
        initialise: initialise_mariadb,
    })
}

fn find_mariadb(name: &str) -> Result<PathBuf, String> {
    find_program(name).ok_or_else(|| {
        format!(
            "`{name}` was not found; run `apt-get install mariadb-server-core mariadb-client-core`"
        )
    })
}

fn initialise_mariadb(recipe: &Recipe, folder: &Path) -> Result<(), String> {
    let mut install = Program::installed(find_mariadb("mariadb-install-db")?).command();
    install
        .args([
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            "--loose-innodb-flush-method=nosync",
        ])
        .arg(format!("--datadir={}", folder.display()))
        .args(&recipe.format);
    run_with_input(install, "")?;
    bootstrap(
        recipe,
        folder,
        "DELETE FROM mysql.global_priv WHERE Host <> 'localhost';\n\
         DELETE FROM mysql.proxies_priv WHERE Host <> 'localhost';\n",
    )
}

fn mysql9(root: &Path) -> Result<Recipe, String> {
    let program = Program::of_other_system(root, "usr/sbin/mysqld");
    require(program.binary(), "mysql9")?;
    let share = root.join("usr/share/mysql");
    let mut format = options(&[
        "--innodb-data-file-path=ibdata1:5M:autoextend",
        "--innodb-autoextend-increment=1",
        "--innodb-redo-log-capacity=16M",
        "--secure-file-priv=NULL",
        "--mysqlx=OFF",
        "--skip-log-bin",
    ]);
    format.extend([
        format!("--basedir={}", root.join("usr").display()),
        format!("--lc-messages-dir={}", share.display()),
        format!("--character-sets-dir={}", share.join("charsets").display()),
        format!("--plugin-dir={}", root.join("usr/lib/mysql/plugin").display()),
    ]);
    let run = options(&[
        "--innodb-buffer-pool-load-at-startup=OFF",
        "--innodb-buffer-pool-dump-at-shutdown=OFF",
    ]);
    Ok(Recipe { program, format, run, initialise: initialise_mysql9 })
}

fn initialise_mysql9(recipe: &Recipe, folder: &Path) -> Result<(), String> {
    let mut install = recipe.program.command();
    install
        .arg("--initialize-insecure")
        .arg(format!("--datadir={}", folder.display()))
        .args(&recipe.format);
    run_with_input(install, "")
}

fn mysql56(home: &Path) -> Result<Recipe, String> {
    let program = Program::with_libraries(home.join("mysqld"), home.to_path_buf());
    require(program.binary(), "mysql56")?;
    let mut format = options(&[
        "--innodb-log-file-size=8M",
        "--innodb-data-file-path=ibdata1:12M:autoextend",
        "--innodb-autoextend-increment=1",
    ]);
    format.extend([
        format!("--basedir={}", home.display()),
        format!("--lc-messages-dir={}", home.join("share").display()),
        format!("--character-sets-dir={}", home.join("share/charsets").display()),
    ]);
    Ok(Recipe { program, format, run: Vec::new(), initialise: initialise_mysql56 })
}

fn initialise_mysql56(recipe: &Recipe, folder: &Path) -> Result<(), String> {
    let share = recipe.program.binary().with_file_name("share");
    let mut sql = String::from("USE mysql;\n");
    for file in ["mysql_system_tables.sql", "mysql_system_tables_data.sql"] {
        let path = share.join(file);
        sql += &fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    }
    sql += "\nDELETE FROM user WHERE Host <> 'localhost' OR User = '';\n\
            DELETE FROM db;\n\
            DELETE FROM proxies_priv WHERE Host <> 'localhost';\n";
    fs::create_dir(folder.join("mysql"))
        .map_err(|error| format!("cannot create the catalog `mysql`: {error}"))?;
    bootstrap(recipe, folder, &sql)
}

/// Feeds statements to a server that serves nobody else.
fn bootstrap(recipe: &Recipe, folder: &Path, sql: &str) -> Result<(), String> {
    let mut server = recipe.program.command();
    server
        .arg(format!("--datadir={}", folder.display()))
        .args(["--bootstrap", "--skip-networking"])
        .args(&recipe.format);
    run_with_input(server, sql)
}

fn require(binary: &Path, name: &str) -> Result<(), String> {
    if binary.is_file() {
        Ok(())
    } else {
        Err(format!("{} does not exist; run `script/servers {name}`", binary.display()))
    }
}
